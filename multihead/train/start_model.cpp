// Reading the model to start from, and whether it is the one the configuration describes.
#include "multihead/train/start_model.h"

#include <filesystem>
#include <system_error>

#include "multihead/base/error.h"
#include "multihead/base/printable.h"
#include "multihead/io/safetensors.h"
#include "multihead/models/config_json.h"
#include "multihead/models/model_file.h"
#include "multihead/tasks/task_type.h"
#include "multihead/train/config/config_keys.h"

namespace mh::detail {

namespace {

namespace fs = std::filesystem;

// Whether weights trained with one value of the key are those of another model with a second one.
bool makes_another_model(const ConfigKey& key, const TrainConfig& config) {
  if (key.section != "model" || key.name == "from" || key.name == "dropout") return false;
  if (key.name == "max_length") return config.model.positions == ModelPositions::learned;
  return key.name != "vocabulary" || config.model.vocabulary != 0;
}

// The same configuration with the model that `other` says.
void check_same_model(const TrainConfig& config, const TrainConfig& other) {
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

StartModel recurrent_start(const TrainConfig& config, const std::string& path) {
  Safetensors file = read_safetensors(path);
  const auto json = file.metadata.find(kConfigKey);
  check(json != file.metadata.end() && says_recurrent(json->second),
        "config: model.from {} is not a recurrent net, and model.kind names one; expected a model of the same kind",
        config.start.from);
  const RecurrentConfig found = recurrent_from_json(json->second, path);
  const TransformerConfig sizes = shared_sizes(found);
  TrainConfig other = config;
  other.recurrent = recurrent_choice(found);
  other.model.vocabulary = sizes.vocabulary;
  other.model.width = sizes.width;
  other.model.encoder_layers = sizes.encoder_layers;
  other.model.decoder_layers = sizes.decoder_layers;
  other.model.tied = sizes.tied;
  check_same_model(config, other);
  return {.config = sizes, .weights = std::move(file.tensors), .metadata = file.metadata};
}

StartModel start_of_task(const TrainConfig& config, const std::string& path) {
  const TaskType& type = task_type(config.task.kind);
  const std::string kind = model_kind(path);
  check(kind.empty() || kind == type.model,
        "config: model.from {} holds a model of kind {}; expected {}, which task.kind \"{}\" trains", config.start.from,
        printable(kind), type.model, type.name);
  StartModel out = type.start(path);
  TrainConfig other = config;
  other.model = out.config;
  check_same_model(config, other);
  return out;
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
  StartFolder out{.model =
                      config.recurrent.is_recurrent() ? recurrent_start(config, path) : start_of_task(config, path)};
  out.tokenizer = tokenizer_of(config, folder);
  check_tokenizer({out.tokenizer, Tokenizer::load(out.tokenizer)}, path, out.model.metadata);
  return out;
}

}  // namespace mh::detail
