// DeBERTa's scores by content and distance, as a bias of attention.
#pragma once

#include "multihead/nn/multi_head_attention.h"

namespace mh {

struct DisentangledRows {
  Tensor q{}, k{};                    // (rows, H, D) of ragged sequences
  Tensor position_k{}, position_q{};  // (2 · span, H, D): projections of the table; empty where not used
};

// (B, H, T, T) f32, T the longest: (q_i · position_k[d] + k_j · position_q[d]) / √(D · parts), d = span + bucket(i - j)
// held within the table, parts = 1 + the number of projections given. Gradient: of all four.
// Throws: unsupported for so many rows that 31 bits do not count their scores.
Tensor disentangled_bias(const DisentangledRows& rows, const Sequences& at, const Disentangled& options);

// The number of a distance: itself up to half the buckets, then logarithmic up to max_distance, of the same sign.
int64_t distance_bucket(int64_t distance, const Disentangled& options);

}  // namespace mh
