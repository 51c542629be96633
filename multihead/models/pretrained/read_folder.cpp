// Reads a folder's config and the headers of its weights, and tells its family where the config does not.
#include "multihead/models/pretrained/read_folder.h"

#include <filesystem>
#include <utility>

#include "multihead/base/printable.h"
#include "multihead/io/file_bytes.h"

namespace mh {

namespace {

// A tensor of every file of a family and of none of another, with and without the prefix of models that have a head.
constexpr std::pair<std::string_view, std::string_view> kOnlyIn[] = {
    {"bert.embeddings.word_embeddings.weight", "bert"},
    {"roberta.embeddings.word_embeddings.weight", "roberta"},
    {"transformer.layer.0.attention.q_lin.weight", "distilbert"},
    {"distilbert.transformer.layer.0.attention.q_lin.weight", "distilbert"},
    {"encoder.albert_layer_groups.0.albert_layers.0.attention.query.weight", "albert"},
    {"albert.encoder.albert_layer_groups.0.albert_layers.0.attention.query.weight", "albert"},
    {"electra.embeddings.word_embeddings.weight", "electra"},
    {"encoder.layer.0.attention.attn.q.weight", "mpnet"},
    {"mpnet.encoder.layer.0.attention.attn.q.weight", "mpnet"},
    {"encoder.layer.0.attention.self.query_proj.weight", "deberta-v2"},
    {"deberta.encoder.layer.0.attention.self.query_proj.weight", "deberta-v2"},
    {"layers.0.attn.Wqkv.weight", "modernbert"},
    {"model.layers.0.attn.Wqkv.weight", "modernbert"},
    {"h.0.attn.c_attn.weight", "gpt2"},
    {"transformer.h.0.attn.c_attn.weight", "gpt2"},
    {"gpt_neox.embed_in.weight", "gpt_neox"},
    {"vit.embeddings.cls_token", "vit"},
    {"text_model.embeddings.token_embedding.weight", "clip"},
};

// BERT's body alone is named as those of RoBERTa, which has one type of token, and ELECTRA, which has no pooler.
bool is_bare_bert(const NamedTensors& file) {
  const auto types = file.find("embeddings.token_type_embeddings.weight");
  return file.count("encoder.layer.0.attention.self.query.weight") != 0 && file.count("pooler.dense.weight") != 0 &&
         types != file.end() && types->second.rank() == 2 && types->second.size(0) == 2;
}

constexpr const char* kFolderConfig = "config.json";

void require_config(const std::string& folder) {
  std::error_code ignored;
  if (std::filesystem::exists(folder + "/" + kFolderConfig, ignored)) return;
  fail(ErrorKind::io, "{} {}; expected a folder with {} and model.safetensors", printable_path(folder),
       !std::filesystem::exists(folder, ignored)        ? "is not there"
       : std::filesystem::is_directory(folder, ignored) ? "holds no config.json"
                                                        : "is a file",
       kFolderConfig);
}

}  // namespace

std::string guessed_family(const NamedTensors& file) {
  std::string_view found;
  for (const auto& [tensor, type] : kOnlyIn) {
    if (file.count(std::string(tensor)) == 0 || type == found) continue;
    if (!found.empty()) return {};
    found = type;
  }
  if (!found.empty()) return std::string(found);
  return is_bare_bert(file) ? "bert" : "";
}

FolderParts read_folder(const std::string& folder, const std::string& as, const SafetensorsOptions& options) {
  require_config(folder);
  const std::string path = folder + "/" + kFolderConfig;
  const detail::FileBytes bytes = detail::read_file(path);
  const std::string_view json(reinterpret_cast<const char*>(bytes.bytes.data()), bytes.bytes.size());
  FolderParts out;
  std::string family = as;
  if (as.empty() && !ConfigFields::reading(json, path).has("model_type")) {
    out.files = read_weights(folder, options);
    family = guessed_family(out.files.tensors);
    out.guessed = !family.empty();
  }
  out.architecture = read_config(json, path, family);
  if (!out.guessed) out.files = read_weights(folder, options);
  out.architecture.head.kind = head_of(family_of(out.architecture.family), out.architecture, out.files.tensors);
  return out;
}

}  // namespace mh
