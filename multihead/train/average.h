// One model from several: the mean of their weights.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "multihead/io/safetensors.h"
#include "multihead/models/model_file.h"

namespace mh {

struct AverageOptions {
  std::optional<DType> stored{};             // of floats: f32, bf16 or f16; else each as in the files
  std::optional<TokenizerFile> tokenizer{};  // that the result names; else the one that the files name
};

// The mean of every weight over the files, taken in f64 and rounded once to the type it is stored in. A file is a model
// (model.safetensors, or any safetensors file) or a checkpoint of a training run, of which the model's weights are
// taken; then the result holds the model's config as save_transformer writes it. Tensors that are no floats must be the
// same in all files. Of the metadata, what all files agree on is kept, and the tokenizer that any of them names.
// Throws: io where a file cannot be read or is not whole; invalid_argument, naming the files, where there is none, or
// two differ in names, shapes, types, the config, the tokenizer or what is no float, options.tokenizer does not belong
// to them (check_tokenizer), a weight is NaN, or a mean is too large for options.stored.
Safetensors average_weights(const std::vector<std::string>& paths, const AverageOptions& options = {});

}  // namespace mh
