// The contract of attention in its plain steps, a few rows of all heads at a time: for learned score mixing, and for a
// device that has no attention kernel yet. What the calls mean is said in kernels/attention.h.
#pragma once

#include <cstdint>

#include "multihead/kernels/attention.h"

namespace mh::kernels {

enum class Mixing : uint8_t { none, heads, keys };

// s'[h] = Σ_g matrix[h][g] · s[g], or s'[j] = Σ_l s[l] · matrix[l][j], after the cap, before bias and mask.
struct ScoreMixing {
  Mixing kind = Mixing::none;
  View matrix{};  // f32, (H, H) or (Tk, Tk), any strides; a shorter sequence uses the leading part
};

struct ComposedForwardArgs {
  AttentionForwardArgs call{};
  ScoreMixing mixing{};
};

struct ComposedBackwardArgs {
  AttentionBackwardArgs call{};
  ScoreMixing mixing{};
  View dmatrix{};  // f32 like the matrix, overwritten; may be null
};

struct ComposedWeightsArgs {
  AttentionWeightsArgs call{};
  ScoreMixing mixing{};
};

struct ComposedStatisticsArgs {
  AttentionStatisticsArgs call{};
  ScoreMixing mixing{};
};

// Rows of all heads held at once: scores of at most 4 MiB, so that they stay in cache between the steps.
constexpr int64_t composed_rows(int64_t heads, int64_t rows, int64_t keys) {
  constexpr int64_t kScores = int64_t{1} << 20;
  const int64_t fit = keys == 0 ? rows : kScores / (heads * keys);
  return fit < 1 ? 1 : fit < rows ? fit : rows;
}

}  // namespace mh::kernels
