// The numbers of a tensor in a few: range, mean, spread, and how many are none.
#pragma once

#include <cstdint>

#include "multihead/tensor/tensor.h"

namespace mh::cli {

struct TensorFacts {
  int64_t nan = 0, infinite = 0;
  // Of the finite numbers, in f64; all NaN where there is none. The deviation is that of the numbers themselves
  // (divided by their count).
  double least, most, mean, deviation;
};

TensorFacts tensor_facts(const Tensor& tensor);

}  // namespace mh::cli
