// What `multihead new` writes for each task: a configuration with comments, and example data.
#pragma once

#include <string>
#include <vector>

namespace mh::cli {

struct StarterFile {
  std::string name, text;  // in the text of config.toml FOLDER stands for the folder it is written to
};

struct Starter {
  std::string task;  // as task.kind has it
  std::string rows;  // a sentence about the data: how a line of the user's own looks
  std::vector<StarterFile> files{};
};

// In the order of the help.
const std::vector<Starter>& starters();

Starter translation_starter();
Starter language_model_starter();
Starter classify_starter();
Starter tag_starter();
Starter answer_starter();
Starter recommend_starter();
Starter image_class_starter();
Starter speech_class_starter();

}  // namespace mh::cli
