// Work on the accumulators of a warpgroup: which row and column each holds, masks, sums, and how they leave for memory.
// Accumulator i of m64nN: row 16 · warp + lane / 4 + 8 · ((i / 2) % 2), column 8 · (i / 4) + 2 · (lane % 4) + i % 2.
#pragma once

#include "multihead/kernels/cuda/hopper/sm90.h"
#include "multihead/kernels/cuda/interval.h"

namespace mh::kernels::cuda {

inline constexpr float kLog2e = 1.4426950408889634f, kLn2 = 0.6931471805599453f;

// Keys [low, high) of the two rows that a lane holds.
struct RowEnds {
  int low[2], high[2];
};

MH_DEVICE RowEnds row_ends(const Interval& mask, int row) {
  RowEnds ends;
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    ends.low[r] = mask.low(row + 8 * r);
    ends.high[r] = mask.high(row + 8 * r);
  }
  return ends;
}

// Sets what the rows do not keep to `fill`. column: of accumulator 0. Serves scores that stand on their side too: a key
// keeps rows.
template <int N>
MH_DEVICE void mask_rows(float (&s)[N], const RowEnds& ends, int column, float fill) {
#pragma unroll
  for (int i = 0; i < N; ++i) {
    const int j = column + (i / 4) * 8 + (i & 1), r = (i >> 1) & 1;
    if (j >= ends.high[r] || j < ends.low[r]) s[i] = fill;
  }
}

// Whether any number of the lane's two rows is infinite or NaN; rows past the sequence's end (not `first`, not
// `second`) may be.
template <int N>
MH_DEVICE bool not_finite(const float (&o)[N], bool first = true, bool second = true) {
  float a = 0, b = 0;
#pragma unroll
  for (int i = 0; i < N; i += 4) {
    a = fmaf(o[i], 0.f, a);
    a = fmaf(o[i + 1], 0.f, a);
    b = fmaf(o[i + 2], 0.f, b);
    b = fmaf(o[i + 3], 0.f, b);
  }
  return (first && !(a == 0.f)) || (second && !(b == 0.f));
}

// 64 × D accumulators to rows of T, each times factor[r]. Four lanes transpose 4 × 4 words, so that each stores 16
// bytes. width: columns that exist, a multiple of 8.
template <class T, int N>
MH_DEVICE void store_rows(const float (&o)[N], T* to, int64_t stride, int row, int rows, int width,
                          const float (&factor)[2], int lane) {
  const int q = lane & 3;
  const bool high = q & 2, odd = q & 1;
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const int i = row + r * 8;
#pragma unroll
    for (int j = 0; j < N / 16; ++j) {
      uint32_t w[4];
#pragma unroll
      for (int g = 0; g < 4; ++g)
        w[g] = pack<T>(o[16 * j + 4 * g + 2 * r] * factor[r], o[16 * j + 4 * g + 2 * r + 1] * factor[r]);
      uint32_t x0 = high ? w[0] : w[2], x1 = high ? w[1] : w[3];
      x0 = __shfl_xor_sync(~0u, x0, 2);
      x1 = __shfl_xor_sync(~0u, x1, 2);
      if (high) {
        w[0] = x0;
        w[1] = x1;
      } else {
        w[2] = x0;
        w[3] = x1;
      }
      uint32_t y0 = odd ? w[0] : w[1], y1 = odd ? w[2] : w[3];
      y0 = __shfl_xor_sync(~0u, y0, 1);
      y1 = __shfl_xor_sync(~0u, y1, 1);
      if (odd) {
        w[0] = y0;
        w[2] = y1;
      } else {
        w[1] = y0;
        w[3] = y1;
      }
      const int column = 32 * j + 8 * q;
      if (i < rows && column < width)
        *reinterpret_cast<uint4*>(to + i * stride + column) = make_uint4(w[0], w[1], w[2], w[3]);
    }
  }
}

}  // namespace mh::kernels::cuda
