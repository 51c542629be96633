// A model in one file: weights by name, and the config that says what to make of them.
#pragma once

#include <string>

#include "multihead/models/transformer.h"

namespace mh {

// Throws: io where the file cannot be read, breaks a rule of safetensors or has no config; invalid_argument where
// weights are missing, have another shape, or are there that the model has no use for.
Transformer load_transformer(const std::string& path, const ParamStoreOptions& options = {});

// Durably, as write_safetensors. `stored`: f32, or bf16 or f16 to halve the file. Throws: io.
void save_transformer(const std::string& path, const Transformer& model, DType stored = DType::f32);

}  // namespace mh
