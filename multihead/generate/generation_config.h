// How a Hugging Face folder wants its model to write: generation_config.json, or the same keys in config.json.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "multihead/generate/options.h"

namespace mh {

// As transformers' generate(): rules look at the whole text; a beam of more than 1 applies them to log p.
struct GenerationConfig {
  bool sample = false;         // do_sample: `sampling` says how; else `search` does
  SearchOptions search{};      // where the file says nothing: greedy
  SamplingOptions sampling{};  // where the file says nothing: top_k 50
  int32_t decoder_start = -1;  // what a decoder begins with; -1: the file does not say
  // Keys that would change what transformers writes and have no effect here, as sentences.
  std::vector<std::string> unread{};
};

// Where neither max_new_tokens nor max_length is there, 20 tokens are written; max_length counts the prompt.
// `name` stands in the sentences. Throws: io where the text is not a JSON object, or a key's value is of another type
// or outside its range.
GenerationConfig read_generation_config(std::string_view json, const std::string& name);

// `how` with the keys of that JSON object in their place; of max_new_tokens and max_length the one that is given
// counts. Throws: alike.
GenerationConfig with_generation_keys(GenerationConfig how, std::string_view json, const std::string& name);

// FOLDER/generation_config.json, or where there is none FOLDER/config.json; the defaults where there is neither.
GenerationConfig load_generation_config(const std::string& folder);

// How a folder wants one of its tasks done.
struct TextTask {
  GenerationConfig how{};
  std::string prefix{};  // stands before every text
};

// The tasks of FOLDER/config.json by name ("summarization", "translation_en_to_de"), as transformers' pipelines read
// them: the keys of task_specific_params in place of the folder's own. Under "" what holds for any other text. Throws:
// as load_generation_config; io where config.json's task_specific_params or a prefix is of another type.
std::map<std::string, TextTask> load_text_tasks(const std::string& folder);

}  // namespace mh
