// Tensors by name, in the order of their names: weights, gradients, what a file holds.
#pragma once

#include <map>
#include <string>

#include "multihead/tensor/tensor.h"

namespace mh {

using NamedTensors = std::map<std::string, Tensor>;

}  // namespace mh
