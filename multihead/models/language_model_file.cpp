// Between a decoder-only model and its file: the config of a Transformer whose kind is "language_model".
#include "multihead/models/language_model_file.h"

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "multihead/base/error.h"
#include "multihead/io/safetensors.h"
#include "multihead/models/config_json.h"
#include "multihead/models/model_file.h"
#include "multihead/models/pretrained/folder_facts.h"

namespace mh {

namespace {

constexpr const char* kLanguageModel = "language_model";
constexpr const char* kWeights = "/model.safetensors";

// The config that a model's file carries; `kind` stands beside it.
nlohmann::ordered_json config_of_file(const std::map<std::string, std::string>& metadata) {
  const auto text = metadata.find(kConfigKey);
  if (text == metadata.end()) return {};
  return nlohmann::ordered_json::parse(text->second, nullptr, false);
}

bool says(const nlohmann::ordered_json& config, const std::string& wanted) {
  if (!config.is_object()) return false;
  const auto kind = config.find("kind");
  return kind != config.end() && *kind == wanted;
}

}  // namespace

bool is_language_model(const std::string& folder) {
  std::error_code ignored;
  const std::string path = folder + kWeights;
  return std::filesystem::exists(path, ignored) &&
         says(config_of_file(read_safetensors(path, {.verify = false}).metadata), kLanguageModel);
}

LanguageModelFolder load_language_model(const std::string& folder, const std::string& kind) {
  const std::string path = folder + kWeights, tokenizer_path = folder + "/tokenizer.json";
  Safetensors file = read_safetensors(path);
  nlohmann::ordered_json json = config_of_file(file.metadata);
  if (!says(json, kind))
    fail(ErrorKind::io, "{}",
         refusal_of_folder(folder, kind == kLanguageModel ? std::string("language model")
                                                          : fmt::format("model of the task {}", kind)));
  json["kind"] = "transformer";  // whose keys it has
  const TransformerConfig config = config_from_json(json.dump(), path);
  const Tokenizer tokenizer = Tokenizer::load(tokenizer_path);
  auto metadata = file.metadata;
  metadata[kConfigKey] = json.dump();
  check_tokenizer({tokenizer_path, tokenizer}, path, metadata);
  const auto store = std::make_shared<ParamStore>(std::move(file.tensors));
  DecoderOnly model(decoder_only_config(config), store);
  check(store->unused().empty(), "{}: holds '{}', for which the model has no use", path,
        store->unused().empty() ? "" : store->unused().front());
  return {tokenizer, config, std::move(model)};
}

void save_language_model(const std::string& folder, const DecoderOnly& model, const TransformerConfig& config,
                         const Tokenizer& tokenizer, const std::string& kind) {
  auto json = nlohmann::ordered_json::parse(config_to_json(config));
  json["kind"] = kind;
  write_safetensors(
      folder + kWeights,
      {.tensors = model.params().values(),
       .metadata = {{kConfigKey, json.dump()}, {"format", "pt"}, {kTokenizerKey, tokenizer_hash(tokenizer)}}});
}

}  // namespace mh
