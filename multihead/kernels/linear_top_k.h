// The contract of linear_top_k: the largest of x · wᵀ and their log-probabilities; the products never lie in memory.
//
// x and w are rounded to integers of 16 bits, whose products are exact and cost half of what those of f32 cost. They
// tell which columns can be among the k largest (their distance from the f32 product has a bound), and what the others
// add to Σ exp. The columns that can be among the k largest are multiplied again in f32.
#pragma once

#include <cstdint>

#include "multihead/base/view.h"

namespace mh::kernels {

// Lays w (N, K) out. With `packed` null only *bytes is written: the room needed. w must be finite.
struct LinearTopKPackArgs {
  View w{};                // f32, unit last stride
  void* packed = nullptr;  // 64-byte aligned
  int64_t* bytes = nullptr;
};

// For each row of x: the k largest of the f32 products x · w[n], largest first, equal ones by smaller n, as
// x · w[n] - lse. The bits of a row depend on nothing but the row and w. A row that is not finite is multiplied in f32
// throughout; a NaN is never chosen: places left over have n = -1 and the value NaN.
struct LinearTopKArgs {
  View x{};                      // (R, K) f32, unit last stride
  View w{};                      // (N, K) f32, unit last stride: what was packed
  const void* packed = nullptr;  // what linear_top_k_pack made of w
  int64_t k = 0;                 // 1 … min(N, kMostTop)
  float* values = nullptr;       // (R, k)
  int32_t* indices = nullptr;
};

}  // namespace mh::kernels
