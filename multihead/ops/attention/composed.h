// Attention in its plain steps, a few rows of all heads at a time: for learned score mixing, and for a device that has
// no attention kernel yet. Takes what the kernels take. Internal to ops.
#pragma once

#include <cstdint>

#include "multihead/kernels/attention.h"

namespace mh::detail {

enum class Mixing { none, heads, keys };

// s'[h] = Σ_g matrix[h][g] · s[g], or s'[j] = Σ_l s[l] · matrix[l][j], after the cap, before bias and mask.
struct ScoreMixing {
  Mixing kind = Mixing::none;
  View matrix;  // f32, (H, H) or (Tk, Tk), any strides; a shorter sequence uses the leading part
};

void composed_forward(const kernels::AttentionForwardArgs& args, const ScoreMixing& mixing);
// dmatrix: f32 like the matrix, overwritten; may be null.
void composed_backward(const kernels::AttentionBackwardArgs& args, const ScoreMixing& mixing, const View& dmatrix);
void composed_weights(const kernels::AttentionWeightsArgs& args, const ScoreMixing& mixing);
void composed_statistics(const kernels::AttentionStatisticsArgs& args, const ScoreMixing& mixing);

// Rows of all heads held at once: scores of at most 4 MiB, so that they stay in cache between the steps.
constexpr int64_t composed_rows(int64_t heads, int64_t rows, int64_t keys) {
  constexpr int64_t kScores = int64_t{1} << 20;
  const int64_t fit = keys == 0 ? rows : kScores / (heads * keys);
  return fit < 1 ? 1 : fit < rows ? fit : rows;
}

}  // namespace mh::detail
