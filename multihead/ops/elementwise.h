// Arithmetic element by element, with broadcasting.
#pragma once

#include "multihead/tensor/tensor.h"

namespace mh {

// Of two tensors of one float type (f32, bf16, f16). Axes are aligned at the end; one of size 1, or a missing leading
// one, repeats. Computed in f32, rounded once. Gradient: of both, summed over repeated axes in an order of sizes alone.
// Where the two are equal, maximum gives half of dy to each. Throws: invalid_argument, with the shapes, where they do
// not repeat to one another or the types differ; unsupported for other types.
Tensor add(const Tensor& a, const Tensor& b);
Tensor sub(const Tensor& a, const Tensor& b);
Tensor mul(const Tensor& a, const Tensor& b);
Tensor div(const Tensor& a, const Tensor& b);
Tensor maximum(const Tensor& a, const Tensor& b);  // NaN where either is

// Of one. Throws: unsupported for other types than f32, bf16, f16.
Tensor scale(const Tensor& x, float factor);
Tensor exp(const Tensor& x);
Tensor log(const Tensor& x);
Tensor sqrt(const Tensor& x);
Tensor square(const Tensor& x);

// x in another float type, rounded to nearest even; x itself where it is that already. f32 and bf16.
// Gradient: dy in the type of x. Throws: unsupported for other types.
Tensor cast(const Tensor& x, DType type);

}  // namespace mh
