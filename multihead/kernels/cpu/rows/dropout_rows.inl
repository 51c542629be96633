// Dropout of flat arrays: one counter gives the bits of 8 elements, a vector of counters those of 8 vectors.
#pragma once

#include "multihead/kernels/cpu/philox.inl"
#include "multihead/kernels/cpu/rows/vectors.inl"
#include "multihead/kernels/cpu/vector_math.inl"

constexpr int64_t kDropoutSpan = 8 * kLanes;

// bits[e] of elements [begin, begin + kDropoutSpan); begin is a multiple of 8.
HWY_INLINE void dropout_bits(uint64_t seed, int64_t begin, uint16_t* bits) {
  const int64_t octet = begin / 8;
  const UV low = hn::Iota(u32, static_cast<uint32_t>(octet));
  UV words[4] = {low, hn::Set(u32, static_cast<uint32_t>(octet >> 32)), hn::Zero(u32), hn::Zero(u32)};
  // Past 2^32 octets a span may carry into the high word.
  words[1] = hn::Sub(words[1],
                     hn::BitCast(u32, hn::VecFromMask(u32, hn::Lt(low, hn::Set(u32, static_cast<uint32_t>(octet))))));
  philox(seed, words);
  hn::StoreInterleaved4(words[0], words[1], words[2], words[3], u32, reinterpret_cast<uint32_t*>(bits));
}

template <class X, class Y>
HWY_INLINE void drop_span(const X* x, const Y* residual, Y* y, int64_t count, const uint16_t* bits,
                          uint32_t threshold) {
  const hn::Rebind<uint16_t, F> half;
  const UV least = hn::Set(u32, threshold);
  const V scale = hn::Set(f32, dropout_scale(threshold));
  for_vectors(count, [&](int64_t at, auto extent) {
    const auto dropped = hn::RebindMask(f32, hn::Lt(hn::PromoteTo(u32, hn::LoadU(half, bits + at)), least));
    V kept = hn::IfThenZeroElse(dropped, hn::Mul(get(x + at, extent), scale));
    if (residual) kept = hn::Add(kept, get(residual + at, extent));
    put(kept, y + at, extent);
  });
}

// residual + x: nothing is dropped.
template <class X, class Y>
HWY_INLINE void keep_piece(const X* x, const Y* residual, Y* y, int64_t count) {
  for_vectors(count, [&](int64_t at, auto extent) {
    const V kept = get(x + at, extent);
    put(residual ? hn::Add(kept, get(residual + at, extent)) : kept, y + at, extent);
  });
}

void dropout(const DropoutArgs& args, Queue&) {
  static_assert(kElementsPerTask % kDropoutSpan == 0);
  with_floats(args.x_type, args.y_type, [&]<class X, class Y>(Of<X>, Of<Y>) {
    const X* x = static_cast<const X*>(args.x);
    const Y* residual = static_cast<const Y*>(args.residual);
    Y* y = static_cast<Y*>(args.y);
    for_pieces(args.count, [&](int64_t begin, int64_t count) {
      if (args.threshold == 0) return keep_piece(x + begin, residual ? residual + begin : nullptr, y + begin, count);
      alignas(64) uint16_t bits[kDropoutSpan];
      for (int64_t at = begin; at < begin + count; at += kDropoutSpan) {
        dropout_bits(args.seed, at, bits);
        drop_span(x + at, residual ? residual + at : nullptr, y + at, smaller(kDropoutSpan, begin + count - at), bits,
                  args.threshold);
      }
    });
  });
}
