// One model from several: the mean of their weights.
#pragma once

#include <string>
#include <vector>

#include "multihead/io/safetensors.h"

namespace mh {

// The mean of every weight over the files, taken in f64 and rounded once to the type it is stored in. A file is a model
// (model.safetensors, or any safetensors file) or a checkpoint of a training run, of which the model's weights are
// taken; then the result holds the model's config as save_transformer writes it. Tensors that are no floats must be the
// same in all files. Of the metadata, what all files agree on is kept. Throws: io where a file cannot be read or is not
// whole; invalid_argument, naming the files, where there is none, or two differ in names, shapes, types, the config or
// what is no float.
Safetensors average_weights(const std::vector<std::string>& paths);

}  // namespace mh
