// The mean of the weights over heads, out of sums that have queries in lanes, and where it has no weights.
#pragma once

#include "multihead/kernels/cpu/attention/fma/block.inl"
#include "multihead/kernels/cpu/transpose.inl"
#include "multihead/kernels/cpu/vector_math.inl"

struct MeanRows {
  int64_t sequence, first, count;
};

inline float* mean_row(const View& mean, int64_t n, int64_t row) {
  return static_cast<float*>(mean.data) + n * mean.stride[0] + row * mean.stride[1];
}

// Zeros of the rows [begin, end) past the keys of sequence n; all of a row past its queries.
inline void clear_mean(const AttentionMeanArgs& m, int64_t n, int64_t begin, int64_t end) {
  const Sequence& s = m.call.sequences.data[n];
  for (int64_t row = begin; row < end; ++row) {
    const int64_t written = row < s.q_len ? s.k_len : 0;
    memset(mean_row(m.mean, n, row) + written, 0, static_cast<size_t>(m.mean.size[2] - written) * 4);
  }
}

// sums (keys, width), added over all heads, into their rows.
inline void write_mean(const AttentionMeanArgs& m, MeanRows to, int64_t width, const float* sums) {
  HWY_ALIGN float spare[kLanes * kBlockKeys];  // rows of lanes that are none
  const int64_t keys = m.call.sequences.data[to.sequence].k_len;
  const V factor = hn::Set(f32, 1 / static_cast<float>(m.call.q.size[1]));
  for (int64_t lane = 0; lane < to.count; lane += kLanes) {
    for (int64_t j = 0; j < keys; j += kBlockKeys) {
      float* rows[kLanes];
      for (int r = 0; r < kLanes; ++r)
        rows[r] = lane + r < to.count ? mean_row(m.mean, to.sequence, to.first + lane + r) + j : spare + r * kBlockKeys;
      columns_to_rows(sums + j * width + lane, width, smaller(kBlockKeys, keys - j), factor, rows);
    }
  }
}
