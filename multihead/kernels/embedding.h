// The contract of rows taken from a table by number.
#pragma once

#include <cstdint>

#include "multihead/base/view.h"

namespace mh::kernels {

// y[n] = scale · table[ids[n]] + positions[position_ids[n]]. Numbers are within the tables.
struct EmbeddingForwardArgs {
  View table{};                  // (V, C), a float type, unit last stride
  const int32_t* ids = nullptr;  // (N)
  float scale = 1;
  View positions{};  // (T, C) f32, unit last stride, or null
  const int32_t* position_ids = nullptr;
  View y{};  // (N, C)
};

// dtable[r] = scale · Σ dy[n] over the n with ids[n] = r, in ascending order of n; rows nobody took are 0. With `add`
// the sums go on from what dtable holds.
struct EmbeddingBackwardArgs {
  View dy{};  // (N, C), unit last stride
  const int32_t* ids = nullptr;
  float scale = 1;
  View dtable{};  // (V, C) f32, contiguous
  bool add = false;
};

}  // namespace mh::kernels
