// Rotary positions: pairs of a head's elements turned by an angle that grows with the position.
#pragma once

#include <cstdint>

#include "multihead/tensor/tensor.h"

namespace mh {

struct RopeOptions {
  float base = 10000;
  bool interleaved = false;  // pairs are neighbours (2n, 2n + 1); else (n, n + width / 2)
  int64_t width = 0;         // elements of a head that are turned, even; 0: all
};

// x (…, H, D) f32, bf16 or f16, any strides; positions i32, 0 or more, repeating to x's leading axes. The pair n at
// position t is turned by t · base^(-2n / width), an angle taken in f64; elements past `width` stay (Su et al.,
// "RoFormer", 2021).
// Gradient: dy turned back; saves the positions.
// Throws: invalid_argument, with the shapes, where they do not fit, the width is odd or a position negative;
// unsupported for other types.
Tensor rope(const Tensor& x, const Tensor& positions, const RopeOptions& options = {});

}  // namespace mh
