// The contract of rotary positions.
#pragma once

#include <cstdint>

#include "multihead/base/view.h"

namespace mh::kernels {

// Turns pairs of the first 2·pairs elements of each head by an angle of the token's position; the rest is copied:
//   y[a] = x[a] · cos - x[b] · sin      y[b] = x[b] · cos + x[a] · sin
// where (a, b) is (2n, 2n + 1), interleaved, or (n, n + pairs). The derivative is the turn by the opposite angle.
struct RopeArgs {
  View x{}, y{};                       // (N, H, D) of one float type, unit last stride
  const int32_t* positions = nullptr;  // (N), each within the tables
  const float* cos = nullptr;          // (positions, pairs); interleaved (positions, 2 · pairs), each twice,
  const float* sin = nullptr;          // and of the two sines the first negated
  int64_t pairs = 0;
  bool interleaved = false;
  bool backwards = false;  // by the opposite angle
};

}  // namespace mh::kernels
