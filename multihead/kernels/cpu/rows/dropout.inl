// The dropout mask of attention, 8 keys at a time: words[e / 2] holds the 16 bits of key 8 · octet + e, the low half
// for even e.
#pragma once

#include "multihead/kernels/cpu/attention/fma/block.inl"
#include "multihead/kernels/cpu/philox.inl"
#include "multihead/kernels/cpu/vector_math.inl"

// factors[(j - begin) · width + lane] = 0 where the pair is dropped, else the scale. begin is a multiple of 8.
inline void dropout_factors(const Scores& scores, const QueryBlock& q, KeySpan keys, float* factors) {
  const int64_t width = q.width();
  const V scale = hn::Set(f32, dropout_scale(scores.dropout_threshold));
  const UV threshold = hn::Set(u32, scores.dropout_threshold), half = hn::Set(u32, 0xffff);
  for (int64_t octet = keys.begin / 8; octet * 8 < keys.end; ++octet) {
    for (int n = 0; n < q.vectors; ++n) {
      const UV row = hn::Iota(u32, static_cast<uint32_t>(q.first) + static_cast<uint32_t>(n * kLanes));
      UV words[4] = {hn::Set(u32, static_cast<uint32_t>(q.sequence)), hn::Set(u32, static_cast<uint32_t>(q.head)), row,
                     hn::Set(u32, static_cast<uint32_t>(octet))};
      philox(scores.dropout_seed, words);
      for (int e = 0; e < 8 && octet * 8 + e < keys.end; ++e) {
        const UV bits = e % 2 ? hn::ShiftRight<16>(words[e / 2]) : hn::And(words[e / 2], half);
        const V factor = hn::IfThenZeroElse(hn::RebindMask(f32, hn::Lt(bits, threshold)), scale);
        hn::StoreU(factor, f32, factors + (octet * 8 + e - keys.begin) * width + n * kLanes);
      }
    }
  }
}
