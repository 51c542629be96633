// Dropout, plain and on the way into a residual stream.
#pragma once

#include <cstdint>

#include "multihead/tensor/tensor.h"

namespace mh {

// Element i of x in row-major order is dropped with probability p: kept where 16 bits of Philox4x32-7 (key = seed,
// counter = (i / 8, 0), low word first, 16 bits an element in order) are not below round(p · 65536), and then scaled by
// that threshold's own 65536 / (65536 - threshold). p = 1 gives 0.
struct DropoutOptions {
  float p = 0;  // 0 … 1
  uint64_t seed = 0;
};

// y = dropout(x). p = 0 gives x itself.
// Gradient: the same elements of dy, scaled alike; saves nothing but the seed.
// Throws: invalid_argument for p outside [0, 1]; unsupported for other types than f32, bf16, f16.
Tensor dropout(const Tensor& x, const DropoutOptions& options);

// y = residual + dropout(x), in the type and shape of residual; x may be f32 or bf16 beside a residual of either.
// Gradient: dy for residual, as of dropout for x.
// Throws: as dropout; invalid_argument, with the shapes, where they differ.
Tensor dropout_add(const Tensor& x, const Tensor& residual, const DropoutOptions& options);

}  // namespace mh
