// Rows of 32-bit words into steps: word s of row r goes to out[s · width + r], by squares turned in registers.
#pragma once

#include "multihead/kernels/cpu/transpose.inl"
#include "multihead/kernels/cpu/vector_math.inl"

// Four words of each of as many rows as D has lanes: the words of row 4b + n in block b.
template <class D>
HWY_INLINE hn::Vec<D> load_words(D d, const float* at, int64_t apart) {
  if constexpr (hn::MaxLanes(d) == 4) {
    return hn::LoadU(d, at);
  } else {
    const hn::Half<D> half;
    constexpr int64_t kRows = hn::MaxLanes(d) / 2;
    const float* next = reinterpret_cast<const float*>(reinterpret_cast<const char*>(at) + kRows * apart);
    return hn::Combine(d, load_words(half, next, apart), load_words(half, at, apart));
  }
}

// As many rows as D has lanes, `steps` a multiple of 4: four steps at a time.
template <class D>
HWY_INLINE void turn_fours(D d, const void* rows, int64_t apart, int64_t steps, int64_t width, uint32_t* out) {
  const hn::RepartitionToWide<D> wide;
  for (int64_t s = 0; s < steps; s += 4) {
    const auto load = [&](int n) HWY_ATTR __attribute__((always_inline)) {
      return load_words(d, reinterpret_cast<const float*>(static_cast<const char*>(rows) + n * apart) + s, apart);
    };
    const auto v0 = load(0), v1 = load(1), v2 = load(2), v3 = load(3);
    const auto a = hn::BitCast(wide, hn::InterleaveLower(d, v0, v1));
    const auto b = hn::BitCast(wide, hn::InterleaveUpper(d, v0, v1));
    const auto c = hn::BitCast(wide, hn::InterleaveLower(d, v2, v3));
    const auto e = hn::BitCast(wide, hn::InterleaveUpper(d, v2, v3));
    float* to = reinterpret_cast<float*>(out + s * width);
    hn::StoreU(hn::BitCast(d, hn::InterleaveLower(wide, a, c)), d, to);
    hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(wide, a, c)), d, to + width);
    hn::StoreU(hn::BitCast(d, hn::InterleaveLower(wide, b, e)), d, to + 2 * width);
    hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(wide, b, e)), d, to + 3 * width);
  }
}

#if HWY_TARGET <= HWY_AVX3
// Sixteen steps at a time: a row's whole line is read at once. Rows that lie a power of two apart share a set of the
// first cache, where a line would not wait for its other parts.
HWY_INLINE void turn_sixteen(hn::ScalableTag<float>, const char* rows, int64_t apart, int64_t width, float* to) {
  V v[4][4];  // v[b][n]: word 4 j + n of rows 4 b … 4 b + 3 in block j
#pragma GCC unroll 4
  for (int b = 0; b < 4; ++b) {
#pragma GCC unroll 4
    for (int n = 0; n < 4; ++n) v[b][n] = V{_mm512_loadu_ps(rows + (4 * b + n) * apart)};
    transpose_squares(v[b]);
  }
#pragma GCC unroll 4
  for (int n = 0; n < 4; ++n) {
    const __m512 even = _mm512_shuffle_f32x4(v[0][n].raw, v[1][n].raw, 0x88);
    const __m512 odd = _mm512_shuffle_f32x4(v[0][n].raw, v[1][n].raw, 0xdd);
    const __m512 next_even = _mm512_shuffle_f32x4(v[2][n].raw, v[3][n].raw, 0x88);
    const __m512 next_odd = _mm512_shuffle_f32x4(v[2][n].raw, v[3][n].raw, 0xdd);
    _mm512_storeu_ps(to + n * width, _mm512_shuffle_f32x4(even, next_even, 0x88));
    _mm512_storeu_ps(to + (4 + n) * width, _mm512_shuffle_f32x4(odd, next_odd, 0x88));
    _mm512_storeu_ps(to + (8 + n) * width, _mm512_shuffle_f32x4(even, next_even, 0xdd));
    _mm512_storeu_ps(to + (12 + n) * width, _mm512_shuffle_f32x4(odd, next_odd, 0xdd));
  }
}
HWY_INLINE void turn_sixteen(hn::CappedTag<float, 8>, const char* rows, int64_t apart, int64_t width, float* to) {
  const __m512i lower = _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11),
                upper = _mm512_setr_epi64(4, 5, 12, 13, 6, 7, 14, 15);
  V v[2][4];
#pragma GCC unroll 2
  for (int b = 0; b < 2; ++b) {
#pragma GCC unroll 4
    for (int n = 0; n < 4; ++n) v[b][n] = V{_mm512_loadu_ps(rows + (4 * b + n) * apart)};
    transpose_squares(v[b]);
  }
#pragma GCC unroll 4
  for (int n = 0; n < 4; ++n) {
    const __m512d first = _mm512_castps_pd(v[0][n].raw), second = _mm512_castps_pd(v[1][n].raw);
    const __m512 low = _mm512_castpd_ps(_mm512_permutex2var_pd(first, lower, second));
    const __m512 high = _mm512_castpd_ps(_mm512_permutex2var_pd(first, upper, second));
    _mm256_storeu_ps(to + n * width, _mm512_castps512_ps256(low));
    _mm256_storeu_ps(to + (4 + n) * width, _mm512_extractf32x8_ps(low, 1));
    _mm256_storeu_ps(to + (8 + n) * width, _mm512_castps512_ps256(high));
    _mm256_storeu_ps(to + (12 + n) * width, _mm512_extractf32x8_ps(high, 1));
  }
}
#endif

// As many rows as D has lanes, `steps` a multiple of 4.
template <class D>
HWY_INLINE void turn_rows(D d, const void* rows, int64_t apart, int64_t steps, int64_t width, uint32_t* out) {
  int64_t s = 0;
#if HWY_TARGET <= HWY_AVX3
  if constexpr (hn::MaxLanes(d) >= 8) {
    for (; s + 16 <= steps; s += 16)
      turn_sixteen(d, static_cast<const char*>(rows) + s * 4, apart, width, reinterpret_cast<float*>(out + s * width));
  }
#endif
  turn_fours(d, static_cast<const char*>(rows) + s * 4, apart, steps - s, width, out + s * width);
}
