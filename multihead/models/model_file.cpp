// Between a Transformer and its file, and whether the tokenizer beside it is its own.
#include "multihead/models/model_file.h"

#include <filesystem>

#include "multihead/base/printable.h"
#include "multihead/io/hash.h"
#include "multihead/models/config_json.h"
#include "multihead/models/recurrent_json.h"

namespace mh {

namespace {

constexpr const char* kModelName = "model.safetensors";
constexpr const char* kTokenizerName = "tokenizer.json";

Transformer made_of(Safetensors file, const std::string& path, const ParamStoreOptions& options) {
  const auto text = file.metadata.find(kConfigKey);
  if (text == file.metadata.end())
    fail(ErrorKind::io, "{}: has no '{}' in its metadata; expected the model's config as JSON", path, kConfigKey);
  const TransformerConfig config = config_from_json(text->second, path);
  const auto store = std::make_shared<ParamStore>(std::move(file.tensors), options);
  Transformer model(config, store);
  check_all_used(path, *store);
  return model;
}

// A wrong folder is named as such, not by the file that happens to be read first.
void require_model_folder(const std::string& folder) {
  check(!folder.empty(), "the name of the model's folder is empty; expected a folder with {} and {}", kModelName,
        kTokenizerName);
  std::error_code ignored;
  const auto holds = [&](const char* file) { return std::filesystem::exists(folder + "/" + file, ignored); };
  if (holds(kModelName) || holds(kTokenizerName)) return;
  fail(ErrorKind::io, "{} {}; expected a folder with {} and {}", printable_path(folder),
       !std::filesystem::exists(folder, ignored)        ? "is not there"
       : std::filesystem::is_directory(folder, ignored) ? "holds no model"
                                                        : "is a file",
       kModelName, kTokenizerName);
}

// Of whichever kind the config is.
int64_t vocabulary_of(const std::string& config, const std::string& path) {
  if (says_recurrent(config)) return recurrent_from_json(config, path).vocabulary;
  return config_from_json(config, path).vocabulary;
}

}  // namespace

void check_all_used(const std::string& path, const ParamStore& store) {
  const std::vector<std::string> unused = store.unused();
  if (unused.empty()) return;
  check(false, "{}: holds '{}'{}, for which the model has no use", path, unused.front(),
        unused.size() > 1 ? fmt::format(" and {} more tensors", unused.size() - 1) : "");
}

std::string tokenizer_hash(const Tokenizer& tokenizer) {
  const std::string text = tokenizer.json();
  detail::Hash hash;
  hash.add(std::as_bytes(std::span(text)));
  return hash.digits();
}

Transformer load_transformer(const std::string& path, const ParamStoreOptions& options) {
  return made_of(read_safetensors(path), path, options);
}

ModelParts read_model_folder(const std::string& folder) {
  require_model_folder(folder);
  const std::string path = folder + "/" + kModelName, tokenizer_path = folder + "/" + kTokenizerName;
  const TokenizerFile tokenizer{tokenizer_path, Tokenizer::load(tokenizer_path)};
  Safetensors file = read_safetensors(path);
  check_tokenizer(tokenizer, path, file.metadata);
  return {tokenizer.tokenizer, std::move(file), path};
}

Transformer transformer_of(ModelParts parts) { return made_of(std::move(parts.file), parts.path, {}); }

ModelFolder load_model_folder(const std::string& folder) {
  ModelParts parts = read_model_folder(folder);
  const Tokenizer tokenizer = parts.tokenizer;
  return {tokenizer, transformer_of(std::move(parts))};
}

void check_tokenizer(const TokenizerFile& file, const std::string& model_path,
                     const std::map<std::string, std::string>& metadata) {
  if (const auto config = metadata.find(kConfigKey); config != metadata.end()) {
    const int64_t vocabulary = vocabulary_of(config->second, model_path);
    check(file.tokenizer.size() == vocabulary,
          "{} does not belong to {}: it has {} tokens; expected the {} of the model's vocabulary",
          printable_path(file.path), printable_path(model_path), file.tokenizer.size(), vocabulary);
  }
  if (const auto expected = metadata.find(kTokenizerKey); expected != metadata.end()) {
    const std::string hash = tokenizer_hash(file.tokenizer);
    check(hash == expected->second,
          "{} does not belong to {}: its hash is {}; expected {}, the tokenizer that the model was trained with",
          printable_path(file.path), printable_path(model_path), hash, printable(expected->second));
  }
}

void save_transformer(const std::string& path, const Transformer& model, const ModelFileOptions& options) {
  check(!options.tokenizer || options.tokenizer.size() == model.config().vocabulary,
        "save_transformer: the tokenizer has {} tokens; expected the {} of the model's vocabulary",
        options.tokenizer ? options.tokenizer.size() : 0, model.config().vocabulary);
  save_model_file(path, model.params(), config_to_json(model.config()), options);
}

void save_model_file(const std::string& path, const ParamStore& params, const std::string& config,
                     const ModelFileOptions& options) {
  Safetensors file{.tensors = params.values(), .metadata = {{kConfigKey, config}, {"format", "pt"}}};
  if (options.tokenizer) file.metadata[kTokenizerKey] = tokenizer_hash(options.tokenizer);
  for (auto& [name, tensor] : file.tensors) tensor = tensor.to(options.stored);
  write_safetensors(path, file);
}

}  // namespace mh
