// The contract of joining attention over disjoint sets of keys.
#pragma once

#include <cstdint>

#include "multihead/base/view.h"

namespace mh::kernels {

// o (B, H, T, D), or packed (T, H, D), of one float type with a unit last stride; lse f32 (B, H, T), or packed (H, T).
struct MergePart {
  View o{}, lse{};
};

// lse = log Σ exp(lse_n), o = Σ exp(lse_n - lse) · o_n; -inf and 0 where every part is empty.
struct MergeForwardArgs {
  const MergePart* parts = nullptr;  // count of them
  int64_t count = 0;
  MergePart out{};
};

// With w_n = exp(lse_n - lse):  d_o_n = w_n · d_o,  d_lse_n = w_n · (d_o · (o_n - o) + d_lse).
struct MergeBackwardArgs {
  const MergePart* parts = nullptr;
  const MergePart* gradients = nullptr;  // of each part; written
  int64_t count = 0;
  MergePart joined{};
  View d_o{}, d_lse{};  // d_lse may be null: 0
};

// own[n] = given[n] where the two differ by more than rounding: |own - given| > 1e-5 · (1 + |given|), or one is NaN.
struct LseChoiceArgs {
  float* own = nullptr;
  const float* given = nullptr;
  int64_t count = 0;
};

}  // namespace mh::kernels
