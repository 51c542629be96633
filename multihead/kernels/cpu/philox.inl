// Philox4x32 with 7 rounds, one counter per lane, and the rule of dropout.
#pragma once

#include "multihead/kernels/cpu/vector_math.inl"

using U = hn::ScalableTag<uint32_t>;
using UV = hn::Vec<U>;

constexpr U u32;

// Neighbours change places and even lanes join odd ones in one instruction each, two of them merged with a mask on
// AVX-512.
HWY_INLINE void wide_product(UV a, uint32_t by, UV& high, UV& low) {
  const UV factor = hn::Set(u32, by);
  const UV even = hn::BitCast(u32, hn::MulEven(a, factor)),
           odd = hn::BitCast(u32, hn::MulEven(hn::Shuffle2301(a), factor));
  high = hn::OddEven(odd, hn::Shuffle2301(even));
  low = hn::OddEven(hn::Shuffle2301(odd), even);
}

// Turns the counters c into their random words.
HWY_INLINE void philox(uint64_t seed, UV (&c)[4]) {
  uint32_t k0 = static_cast<uint32_t>(seed), k1 = static_cast<uint32_t>(seed >> 32);
#pragma GCC unroll 7
  for (int round = 0; round < 7; ++round) {
    UV high0, low0, high1, low1;
    wide_product(c[0], 0xD2511F53u, high0, low0);
    wide_product(c[2], 0xCD9E8D57u, high1, low1);
    c[0] = hn::Xor(hn::Xor(high1, c[1]), hn::Set(u32, k0));
    c[1] = low1;
    c[2] = hn::Xor(hn::Xor(high0, c[3]), hn::Set(u32, k1));
    c[3] = low0;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
}

// What a kept element is multiplied by: 1 over the share that is kept.
inline float dropout_scale(uint32_t threshold) {
  return threshold >= 65536 ? 0.0f : 65536.0f / (65536.0f - static_cast<float>(threshold));
}
