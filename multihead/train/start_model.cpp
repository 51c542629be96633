// Reading the model to start from, and whether it is the one the configuration describes.
#include "multihead/train/start_model.h"

#include <filesystem>
#include <system_error>

#include "multihead/base/error.h"
#include "multihead/base/printable.h"
#include "multihead/models/model_file.h"
#include "multihead/tasks/task_type.h"
#include "multihead/train/config_keys.h"

namespace mh::detail {

namespace {

namespace fs = std::filesystem;

// Whether weights trained with one value of the key are those of another model with a second one.
bool makes_another_model(const ConfigKey& key, const TrainConfig& config) {
  if (key.section != "model" || key.name == "from" || key.name == "dropout") return false;
  if (key.name == "max_length") return config.model.positions == ModelPositions::learned;
  return key.name != "vocabulary" || config.model.vocabulary != 0;
}

void check_same_model(const TrainConfig& config, const TransformerConfig& start) {
  TrainConfig other = config;
  other.model = start;
  std::vector<std::string> different;
  for (const ConfigKey& key : config_keys()) {
    const std::string is = value_text(key.value(config)), has = value_text(key.value(other));
    if (makes_another_model(key, config) && is != has)
      different.push_back(fmt::format("{} is {}, there it is {}", key.path(), is, has));
  }
  check(different.empty(), "config: model.from names another model, {}: {}; expected the keys of its config.toml",
        config.start.from, fmt::join(different, "; "));
}

std::string tokenizer_of(const TrainConfig& config, const fs::path& folder) {
  const std::string own = (folder / "tokenizer.json").string(), &named = config.tokenizer.path;
  std::error_code ignored;
  const bool has_own = fs::exists(own, ignored);
  check(has_own || !named.empty(), "config: model.from {} has no tokenizer.json; expected tokenizer.path to name it",
        config.start.from);
  if (named.empty() || !has_own) return named.empty() ? own : named;
  check(Tokenizer::load(named).json() == Tokenizer::load(own).json(),
        "config: tokenizer.path {} is not the tokenizer of model.from {}; expected the same one, or no tokenizer.path",
        named, config.start.from);
  return own;
}

}  // namespace

StartFolder read_start_model(const TrainConfig& config) {
  std::error_code ignored;
  const fs::path from(config.start.from);
  const bool is_folder = fs::is_directory(from, ignored);
  const fs::path folder = is_folder ? from : from.parent_path();
  check(!fs::equivalent(folder.empty() ? "." : folder, config.train.output, ignored),
        "config: model.from {} lies in train.output {}, which is written to; expected another folder",
        config.start.from, config.train.output);
  const std::string path = (is_folder ? from / "model.safetensors" : from).string();
  const TaskType& type = task_type(config.task.kind);
  const std::string kind = model_kind(path);
  check(kind.empty() || kind == type.model,
        "config: model.from {} holds a model of kind {}, and task.kind is \"{}\"; expected a model of the same task",
        config.start.from, printable(kind), type.name);
  StartFolder out{.model = type.start(path)};
  check_same_model(config, out.model.config);
  out.tokenizer = tokenizer_of(config, folder);
  check_tokenizer({out.tokenizer, Tokenizer::load(out.tokenizer)}, path, out.model.metadata);
  return out;
}

}  // namespace mh::detail
