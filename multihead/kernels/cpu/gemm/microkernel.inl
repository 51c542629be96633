// The register tile under every product of attention: rows times columns, the columns in lanes.
#pragma once

#include "multihead/kernels/cpu/vector_math.inl"

// 32 registers hold 8 × 3 accumulators, the 3 vectors of a step and the broadcast; 16 registers hold 4 × 3.
// Measured on Ice Lake and Zen 4: 8 × 48 runs at 0.90 … 0.96 of the FMA peak from L1.
#if HWY_TARGET <= HWY_AVX3 || HWY_ARCH_ARM
constexpr int kTileRows = 8;
#else
constexpr int kTileRows = 4;
#endif
constexpr int kTileVectors = 3;

// acc[r][n] += Σ_k a[r · row + k · step] · b[k · width + n] for n from First on: k in ascending order, one fused
// multiply-add each.
template <int First = 0, int R, int N>
HWY_INLINE void accumulate(V (&acc)[R][N], const float* HWY_RESTRICT a, int64_t row, int64_t step,
                           const float* HWY_RESTRICT b, int64_t width, int64_t count) {
#pragma GCC unroll 2
  for (int64_t k = 0; k < count; ++k) {
    V column[N];
#pragma GCC unroll 8
    for (int n = First; n < N; ++n) column[n] = hn::LoadU(f32, b + k * width + n * kLanes);
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
      const V x = hn::Set(f32, a[r * row + k * step]);
#pragma GCC unroll 8
      for (int n = First; n < N; ++n) acc[r][n] = hn::MulAdd(x, column[n], acc[r][n]);
    }
  }
}

// Rows of a tile that is N vectors wide.
template <int N>
constexpr int tile_rows() {
  return N <= kTileVectors ? kTileRows : kTileRows * kTileVectors / N;
}

// Calls body<R>(first) over `count` rows: full tiles of `Full` rows, then what is left in tiles of 4, 2 and 1.
template <int Full = kTileRows, class Body>
HWY_INLINE void for_row_tiles(int64_t count, Body&& body) {
  int64_t r = 0;
  for (; r + Full <= count; r += Full) body.template operator()<Full>(r);
  if constexpr (Full > 4) {
    if (r + 4 <= count) {
      body.template operator()<4>(r);
      r += 4;
    }
  }
  if constexpr (Full > 2) {
    if (r + 2 <= count) {
      body.template operator()<2>(r);
      r += 2;
    }
  }
  if (r < count) body.template operator()<1>(r);
}

// c[r · width + n] += Σ_k a[r · row + k] · b[k · stride + n] for `rows` rows and N vectors of columns. The sum over k
// starts from 0 and joins c as one number: a long sum then rounds by the root of its blocks, not of its terms.
template <int N>
HWY_INLINE void add_product(float* HWY_RESTRICT c, int64_t width, int64_t rows, const float* HWY_RESTRICT a,
                            int64_t row, const float* HWY_RESTRICT b, int64_t stride, int64_t count) {
  for_row_tiles<tile_rows<N>()>(
      rows, [&]<int R>(int64_t first) HWY_ATTR __attribute__((always_inline)) {
        V acc[R][N];
        float* out = c + first * width;
#pragma GCC unroll 16
        for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
          for (int n = 0; n < N; ++n) acc[r][n] = hn::Zero(f32);
        accumulate(acc, a + first * row, row, 1, b, stride, count);
#pragma GCC unroll 16
        for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
          for (int n = 0; n < N; ++n) {
            float* at = out + r * width + n * kLanes;
            hn::StoreU(hn::Add(hn::LoadU(f32, at), acc[r][n]), f32, at);
          }
      });
}

// Where vector n of the columns takes part up to ends[n] only, ascending: body<First>(begin, end) for each range of k
// in which the vectors from First on do.
template <int First = 0, int N, class Body>
HWY_INLINE void for_stairs(const int64_t (&ends)[N], Body&& body) {
  const int64_t begin = First == 0 ? 0 : ends[First == 0 ? 0 : First - 1];
  if (begin < ends[First]) body.template operator()<First>(begin, ends[First]);
  if constexpr (First + 1 < N) for_stairs<First + 1>(ends, body);
}

// c[r · width + n] += Σ_k a[r + k · step] · b[k · width + n] over such columns: the same bits as with zeros in the
// places left out.
template <int N>
HWY_INLINE void add_stairs(float* HWY_RESTRICT c, int64_t rows, const float* HWY_RESTRICT a, int64_t step,
                           const float* HWY_RESTRICT b, const int64_t (&ends)[N]) {
  constexpr int64_t width = N * kLanes;
  for_row_tiles<tile_rows<N>()>(
      rows, [&]<int R>(int64_t first) HWY_ATTR __attribute__((always_inline)) {
        V acc[R][N];
#pragma GCC unroll 16
        for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
          for (int n = 0; n < N; ++n) acc[r][n] = hn::Zero(f32);
        for_stairs(
            ends, [&]<int First>(int64_t begin, int64_t end) HWY_ATTR __attribute__((always_inline)) {
              accumulate<First>(acc, a + first + begin * step, 1, step, b + begin * width, width, end - begin);
            });
#pragma GCC unroll 16
        for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
          for (int n = 0; n < N; ++n) {
            float* at = c + (first + r) * width + n * kLanes;
            hn::StoreU(hn::Add(hn::LoadU(f32, at), acc[r][n]), f32, at);
          }
      });
}

// add_product for any width, a multiple of kLanes: four vectors at a time.
inline void add_wide_product(float* c, int64_t width, int64_t rows, const float* a, int64_t row, const float* b,
                             int64_t stride, int64_t count) {
  int64_t at = 0;
  for (; at + 4 * kLanes <= width; at += 4 * kLanes) add_product<4>(c + at, width, rows, a, row, b + at, stride, count);
  switch ((width - at) / kLanes) {
    case 3: return add_product<3>(c + at, width, rows, a, row, b + at, stride, count);
    case 2: return add_product<2>(c + at, width, rows, a, row, b + at, stride, count);
    case 1: return add_product<1>(c + at, width, rows, a, row, b + at, stride, count);
    default: return;
  }
}
