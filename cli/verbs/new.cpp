// `multihead new`: a folder with a configuration and example data, to train at once and to fill with one's own.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "cli/say.h"
#include "cli/starters/starters.h"
#include "cli/verbs.h"
#include "multihead/base/error.h"
#include "multihead/base/printable.h"
#include "multihead/io/durable_file.h"

namespace mh::cli {
namespace {

constexpr const char* kNewEnd =
    "The example data are a few dozen rows: enough to see a run from its beginning to its end, not to learn much. Then\n"
    "put your own in their place, in the same form, and train again.\n"
    "\n"
    "  multihead new classify reviews\n"
    "  multihead train reviews/config.toml";

struct NewChoice {
  std::string task, folder;
};

std::string replaced(std::string text, const std::string& folder) {
  constexpr std::string_view kFolder = "FOLDER";
  for (size_t at = text.find(kFolder); at != std::string::npos; at = text.find(kFolder, at + folder.size()))
    text.replace(at, kFolder.size(), folder);
  return text;
}

const Starter& starter_of(const std::string& task) {
  for (const Starter& each : starters())
    if (each.task == task) return each;
  fail(ErrorKind::internal, "new: {} has no starter", task);
}

int run(const NewChoice& choice) {
  const Starter& starter = starter_of(choice.task);
  std::string folder = std::filesystem::path(choice.folder).lexically_normal().string();
  while (folder.size() > 1 && folder.ends_with('/')) folder.pop_back();
  check(folder.find_first_of("\"\\\n") == std::string::npos,
        "new: the folder's name {} has a quote, a backslash or a line end; expected none", printable_path(folder));
  for (const StarterFile& file : starter.files) {
    const std::string path = folder + "/" + file.name;
    std::error_code ignored;
    check(!std::filesystem::exists(path, ignored), "new: {} is there already; expected another folder",
          printable_path(path));
  }
  make_folder(folder);
  for (const StarterFile& file : starter.files) {
    const std::string path = folder + "/" + file.name;
    make_folder(std::filesystem::path(path).parent_path().string());
    write_durably(path, file.name == "config.toml" ? replaced(file.text, folder) : file.text);
  }
  if (!quiet())
    fmt::print("{}/: config.toml and example data; {}\nto train: multihead train {}/config.toml\n", folder,
               starter.rows, folder);
  return kDone;
}

}  // namespace

const std::vector<Starter>& starters() {
  static const std::vector<Starter> all{translation_starter(), language_model_starter(), classify_starter(),
                                        tag_starter(),         answer_starter(),         recommend_starter(),
                                        image_class_starter(), speech_class_starter()};
  return all;
}

void add_new(CLI::App& app, int& code) {
  CLI::App* verb = app.add_subcommand("new", "write a configuration and example data for a task into a new folder");
  auto choice = std::make_shared<NewChoice>();
  std::vector<std::string> tasks;
  for (const Starter& each : starters()) tasks.push_back(each.task);
  verb->add_option("TASK", choice->task, fmt::format("one of {}", fmt::join(tasks, ", ")))
      ->type_name("")
      ->required()
      ->check(CLI::IsMember(tasks));
  verb->add_option("FOLDER", choice->folder, "the folder to write to; made where it is not there")
      ->type_name("")
      ->required();
  verb->footer(kNewEnd);
  verb->callback([choice, &code] { code = run(*choice); });
}

}  // namespace mh::cli
