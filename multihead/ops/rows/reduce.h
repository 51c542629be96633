// Sums, means and maxima over axes.
#pragma once

#include <vector>

#include "multihead/tensor/tensor.h"

namespace mh {

struct ReduceOptions {
  std::vector<int> axes{};  // negative ones count from the end; none given: all
  bool keep = false;        // reduced axes stay, with size 1
};

// In the type of x, f32, bf16 or f16; computed in f32 in an order of sizes alone, rounded once. Over nothing a sum is
// 0, a mean NaN and a maximum -inf. Gradient: dy repeated (mean: over the number of elements; max: shared by the
// largest, equally). Throws: invalid_argument, with the shape, for an axis that x does not have or that is named twice;
// unsupported for other types.
Tensor sum(const Tensor& x, const ReduceOptions& options = {});
Tensor mean(const Tensor& x, const ReduceOptions& options = {});
Tensor max(const Tensor& x, const ReduceOptions& options = {});

}  // namespace mh
