// The contract of the angles that rope (kernels/rope.h) turns by.
#pragma once

#include <cstdint>

namespace mh::kernels {

// angle = positions[t] · base^(-pair / pairs), taken in f64. cos, sin (count, pairs); interleaved (count, 2 · pairs),
// each twice, and of the two sines the first negated.
struct RopeAnglesArgs {
  const int32_t* positions = nullptr;  // (count), or null: 0, 1, 2 …
  int64_t count = 0;
  float base = 0;
  int64_t pairs = 0;
  bool interleaved = false;
  float *cos = nullptr, *sin = nullptr;
};

}  // namespace mh::kernels
