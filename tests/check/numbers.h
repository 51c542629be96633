// What the tests of the reference share.
#pragma once

#include <limits>

#include "multihead/tensor/tensor.h"

namespace mh {

inline constexpr double kNone = -std::numeric_limits<double>::infinity();

inline Tensor numbers(const Shape& shape, uint64_t seed) { return randn(shape, seed, DType::f64); }

}  // namespace mh
