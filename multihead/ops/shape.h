// Views, parts and joins of tensors that carry gradients.
#pragma once

#include <vector>

#include "multihead/tensor/tensor.h"

namespace mh {

// As Tensor's methods of these names: views where strides allow it. Gradient: dy, seen the other way round; of slice it
// is 0 outside. Throws: invalid_argument, as those methods.
Tensor reshape(const Tensor& x, const Shape& shape);
Tensor transpose(const Tensor& x, int a, int b);
Tensor slice(const Tensor& x, int axis, int64_t begin, int64_t end);
Tensor broadcast_to(const Tensor& x, const Shape& shape);  // gradient: dy summed over what repeats

// Views of consecutive parts of x along an axis. Gradient: the parts' dy side by side in one buffer; a part that
// nothing depended on gives 0. Throws: invalid_argument, with the shape, unless the sizes are 0 or more and add up to
// the axis.
std::vector<Tensor> split(const Tensor& x, int axis, const std::vector<int64_t>& sizes);

// Tensors of one type, one after the other along an axis. Gradient: views of dy.
// Throws: invalid_argument, with the shapes, for none at all, or where type or another axis differ.
Tensor concat(const std::vector<Tensor>& parts, int axis);

// y[n…] = x[ids[n…]]: whole entries of the first axis by number; x f32, bf16 or f16, ids i32 of any shape.
// Gradient: dy added up by entry in ascending order of n, in f32, rounded once.
// Throws: invalid_argument where a number is outside the axis, or x is a scalar; unsupported for other types.
Tensor gather(const Tensor& x, const Tensor& ids);

}  // namespace mh
