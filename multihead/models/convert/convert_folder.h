// Folders of Hugging Face's as they were, made as they are now: safetensors, tokenizer.json, a config that names its
// family.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "multihead/base/dtype.h"

namespace mh {

struct ConvertOptions {
  std::optional<DType> stored{};  // of all floats: f32, bf16 or f16; as they are where not given
  std::string as{};               // the family, where config.json has no model_type
};

struct ConvertedFolder {
  int64_t tensors = 0, bytes = 0;    // of its weights
  std::string description{};         // "bert masked language model"; empty where multihead does not know its kind
  std::string verb{};                // the program's for it
  std::vector<std::string> notes{};  // what one may want to know, a sentence each
};

// Reads the folder `from`: model.safetensors or pytorch_model.bin, whole or in shards, and writes the folder `to`:
//   model.safetensors    every tensor with its bits, unless `stored` says another type; of names that share a tensor
//   the
//                        first, as transformers writes it
//   config.json          with model_type, where it had none
//   tokenizer.json       made of older files where there was none
// and every other file as it is; folders in it likewise, hidden ones left out. Nothing is written where the weights or
// the config are refused, and config.json is written last. Throws: io where a file is missing or breaks its format;
// invalid_argument where `to` is not a new or empty folder outside of `from`, or `stored` does not hold a number;
// unsupported.
ConvertedFolder convert_folder(const std::string& from, const std::string& to, const ConvertOptions& options = {});

// Throws: io where `from` is no folder or `to` cannot be written; invalid_argument where `to` is neither new nor empty,
// or lies in `from`.
void check_new_folder(const std::string& from, const std::string& to);

}  // namespace mh
