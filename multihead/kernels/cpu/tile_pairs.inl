// Blocks of 32 × 32 sums of bf16 products by VDPBF16PS: a third kind of tiles, whose sums stay in registers.
#pragma once

#include "multihead/kernels/cpu/tile.inl"
#include "multihead/kernels/cpu/vector_math.inl"

class PairTiles {
 public:
  // A product of two tiles alone would load and store its 16 registers of sums: what these tiles offer is the whole
  // sum.
  static constexpr bool kWholeSums = true;

  // out = (out +) Σ_n left(n) · right(n), `pairs` deep; step(n, upper, lower, right) gives the operands of 16 pairs,
  // right two tiles. 16 × 16 sums in 16 registers run at 0.96 … 0.98 of the peak of pairs, 8 × 32 at 0.93 … 0.95 (Zen
  // 4, 64 and 128 deep).
  template <bool kAdd, class Step>
  HWY_INLINE void sum(const TileBlock& out, int64_t pairs, Step step) {
    if (out.rows <= 8)
      sum_rows<kAdd, 8>(out, pairs, step);
    else
      sum_rows<kAdd, 16>(out, pairs, step);
  }

 private:
  template <bool kAdd, int R, class Step>
  HWY_INLINE void sum_rows(const TileBlock& out, int64_t pairs, Step step) {
    for (int64_t lower = 0; lower < 2; ++lower)
      for (int64_t beside = 0; beside < 2; ++beside)
        sum_tile<kAdd, R>(
            out.at + lower * out.below + beside * out.beside, out.row,
            pairs, [&](int64_t n, const uint32_t*& a, const uint32_t*& b) HWY_ATTR __attribute__((always_inline)) {
              const uint32_t* rows[2];
              step(n, rows[0], rows[1], b);
              a = rows[lower];
              b += beside * kTileFloats;
            });
  }

  // The sum starts from 0 and joins `out` as one number: a long sum then rounds by the root of its blocks, not of its
  // terms.
  template <bool kAdd, int R, class Step>
  HWY_INLINE void sum_tile(float* out, int64_t row, int64_t pairs, Step step) {
    __m512 acc[R];
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) acc[r] = _mm512_setzero_ps();
    for (int64_t n = 0; 16 * n < pairs; ++n) {
      const uint32_t *a, *b;
      step(n, a, b);
      const int64_t depth = smaller(16, pairs - 16 * n);
#pragma GCC unroll 2
      for (int64_t k = 0; k < depth; ++k) {
        const __m512i words = _mm512_load_si512(b + 16 * k);
#pragma GCC unroll 16
        for (int r = 0; r < R; ++r)
          acc[r] =
              _mm512_dpbf16_ps(acc[r], (__m512bh)_mm512_set1_epi32(static_cast<int>(a[16 * r + k])), (__m512bh)words);
      }
    }
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
      float* to = out + r * row;
      _mm512_store_ps(to, kAdd ? _mm512_add_ps(_mm512_load_ps(to), acc[r]) : acc[r]);
    }
  }
};
