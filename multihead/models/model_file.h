// A model in one file: weights by name, the config that says what to make of them, and which tokenizer belongs to it.
#pragma once

#include <map>
#include <string>

#include "multihead/io/safetensors.h"
#include "multihead/models/transformer.h"
#include "multihead/text/tokenizer.h"

namespace mh {

// Where the metadata of a model's file holds the tokenizer_hash of the tokenizer it was trained with.
inline constexpr const char* kTokenizerKey = "multihead.tokenizer";

// XXH3 with 128 bits of Tokenizer::json(), in 32 hexadecimal digits: what `xxhsum -H2` says of a tokenizer.json that
// multihead or Hugging Face's `tokenizers` wrote. The layout of the file it was read from does not matter.
std::string tokenizer_hash(const Tokenizer& tokenizer);

// Throws: io where the file cannot be read, breaks a rule of safetensors, differs from the hash it carries or has no
// config; invalid_argument where weights are missing, have another shape, or are there that the model has no use for.
Transformer load_transformer(const std::string& path, const ParamStoreOptions& options = {});

struct ModelFolder {
  Tokenizer tokenizer;
  Transformer model;
};

// FOLDER/tokenizer.json and FOLDER/model.safetensors. Throws: as Tokenizer::load, load_transformer and check_tokenizer;
// io where the folder holds neither.
ModelFolder load_model_folder(const std::string& folder);

// The same folder before anything is made of it, its tokenizer checked.
struct ModelParts {
  Tokenizer tokenizer;
  Safetensors file;
  std::string path;  // of the file
};
ModelParts read_model_folder(const std::string& folder);
Transformer transformer_of(ModelParts parts);
// Throws: invalid_argument where the store's file has more than was asked for.
void check_all_used(const std::string& path, const ParamStore& store);

struct TokenizerFile {
  std::string path;
  Tokenizer tokenizer;
};

// Throws: invalid_argument, naming both files, where the tokenizer has not as many tokens as the model's vocabulary, or
// is not the one that the model names. `metadata` is that of the model's file: without a config or a hash (files of
// other programs), that part is not checked.
void check_tokenizer(const TokenizerFile& file, const std::string& model_path,
                     const std::map<std::string, std::string>& metadata);

struct ModelFileOptions {
  DType stored = DType::f32;  // or bf16 or f16, to halve the file
  Tokenizer tokenizer{};      // the one it was trained with; without one, the file names none
};

// Durably, as write_safetensors. Throws: io; invalid_argument where the tokenizer has another number of tokens.
void save_transformer(const std::string& path, const Transformer& model, const ModelFileOptions& options = {});
// The same of any model: `config` is its JSON.
void save_model_file(const std::string& path, const ParamStore& params, const std::string& config,
                     const ModelFileOptions& options);

}  // namespace mh
