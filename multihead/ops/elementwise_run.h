// The kernels of elementwise arithmetic and reductions on tensors, without checks or recording: what derivatives are
// made of.
#pragma once

#include <vector>

#include "multihead/kernels/elementwise.h"
#include "multihead/tensor/tensor.h"

namespace mh::detail {

// The shape that both repeat to; an axis is -1 where they do not fit.
Shape broadcast_shape(const Shape& a, const Shape& b);

// In the shape that a and b repeat to, and their type.
Tensor run_binary(kernels::Binary kind, const Tensor& a, const Tensor& b, float factor = 1);
// In `type`.
Tensor run_unary(kernels::Unary kind, const Tensor& x, DType type, float factor = 1);
// Over the axes where `over` is set, which stay with size 1; in f32.
Tensor run_reduce(const Tensor& x, const std::vector<bool>& over, bool max);
// dy, summed over the axes along which `shape` was repeated to that of dy; in the type of dy.
Tensor sum_to(const Tensor& dy, const Shape& shape);

}  // namespace mh::detail
