// What cross_entropy and linear_cross_entropy share.
#pragma once

#include <string_view>

#include "multihead/ops/rows/cross_entropy.h"

namespace mh::detail {

// How many rows count. Throws: as cross_entropy, naming `op`.
int64_t counted_rows(std::string_view op, const Tensor& targets, int64_t classes, const CrossEntropyOptions& options);
// A scalar: factor times the sum of a vector in f64, in ascending order.
Tensor total(const Tensor& rows, double factor);

}  // namespace mh::detail
