// The contract of softmax over rows and of what is taken from it. Rows are views (R, C) with a unit last stride.
#pragma once

#include <cstdint>

#include "multihead/base/view.h"

namespace mh::kernels {

// y = exp(x - lse), or x - lse with `log`; lse = log Σ exp(x). A row of -inf alone gives NaN, as 0 / 0 does.
struct SoftmaxForwardArgs {
  View x{}, y{};  // one float type
  bool log = false;
};

// dx = y · (dy - Σ dy · y), or dy - exp(y) · Σ dy with `log`. dx may be dy.
struct SoftmaxBackwardArgs {
  View y{}, dy{}, dx{};
  bool log = false;
};

// lse (R) f32; -inf for a row of -inf alone and for an empty one.
struct LogSumExpArgs {
  View x{};
  float* lse = nullptr;
};

inline constexpr int64_t kMostTop = 64;

// The k largest of each row, largest first, equal ones by smaller column, as x - lse. A NaN is never chosen: places
// left over have column -1 and the value NaN.
struct TopKArgs {
  View x{};
  int64_t k = 0;            // 1 … kMostTop
  float* values = nullptr;  // (R, k)
  int32_t* indices = nullptr;
};

}  // namespace mh::kernels
