// The largest element of a row, and exponentials past it.
#pragma once

#include "multihead/kernels/cpu/rows/vectors.inl"
#include "multihead/kernels/cpu/vector_math.inl"

// 2^((x - max) · log2 e).
HWY_INLINE V exp_past(V x, V max) { return exp2(hn::Mul(hn::Sub(x, max), hn::Set(f32, kLog2E))); }

// NaN is passed over here: the sum of exponentials finds it.
template <class T>
HWY_INLINE float row_max(const T* x, int64_t n) {
  Chains most(kNone);
  const V none = hn::Set(f32, kNone);
  for_chains(n, [&](int64_t at, auto extent, int chain) {
    const V each = keep(get(x + at, extent), none, extent);
    most.of[chain] = hn::IfThenElse(hn::Gt(each, most.of[chain]), each, most.of[chain]);
  });
  return most.max();
}

// A maximum that may be subtracted: that of an empty row or one of -inf alone is not finite.
HWY_INLINE float finite_max(float max) { return max == kNone ? 0 : max; }
