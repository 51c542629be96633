// The contract of dropout on elements.
#pragma once

#include <cstdint>

#include "multihead/base/view.h"

namespace mh::kernels {

// y[i] = residual[i] + (kept(i) ? x[i] · 65536 / (65536 - threshold) : 0) over `count` contiguous elements.
// kept(i): bits(i) >= threshold, where bits(i) are 16 bits of Philox4x32-7 with key = seed and counter = (i / 8's low
// word, its high word, 0, 0): of the four words, halves i % 8 in order, low halves first. The derivative with respect
// to x is the same map of dy without a residual.
struct DropoutArgs {
  const void* x = nullptr;  // may be y where the types are the same
  DType x_type = DType::f32;
  const void* residual = nullptr;  // of y's type, or null: 0; may be y
  void* y = nullptr;
  DType y_type = DType::f32;
  int64_t count = 0;
  uint32_t threshold = 0;  // 0 … 65536; 0: no bits are drawn
  uint64_t seed = 0;
};

}  // namespace mh::kernels
