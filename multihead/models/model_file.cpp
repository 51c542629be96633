// Between a Transformer and its file.
#include "multihead/models/model_file.h"

#include "multihead/io/safetensors.h"
#include "multihead/models/config_json.h"

namespace mh {

namespace {

void check_all_used(const std::string& path, const ParamStore& store) {
  const std::vector<std::string> unused = store.unused();
  if (unused.empty()) return;
  check(false, "{}: holds '{}'{}, for which the model has no use", path, unused.front(),
        unused.size() > 1 ? fmt::format(" and {} more tensors", unused.size() - 1) : "");
}

}  // namespace

Transformer load_transformer(const std::string& path, const ParamStoreOptions& options) {
  Safetensors file = read_safetensors(path);
  const auto text = file.metadata.find(kConfigKey);
  if (text == file.metadata.end())
    fail(ErrorKind::io, "{}: has no '{}' in its metadata; expected the model's config as JSON", path, kConfigKey);
  const TransformerConfig config = config_from_json(text->second, path);
  const auto store = std::make_shared<ParamStore>(std::move(file.tensors), options);
  Transformer model(config, store);
  check_all_used(path, *store);
  return model;
}

void save_transformer(const std::string& path, const Transformer& model, DType stored) {
  Safetensors file{.tensors = model.params().values(),
                   .metadata = {{kConfigKey, config_to_json(model.config())}, {"format", "pt"}}};
  for (auto& [name, tensor] : file.tensors) tensor = tensor.to(stored);
  write_safetensors(path, file);
}

}  // namespace mh
