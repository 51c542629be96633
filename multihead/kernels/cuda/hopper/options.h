// What options do to the accumulators of a block of scores: scale, cap, biases, masks pair by pair, dropout.
#pragma once

#include "multihead/kernels/cuda/elements.h"
#include "multihead/kernels/cuda/hopper/fragment.h"
#include "multihead/kernels/cuda/pairs.h"

namespace mh::kernels::cuda {

// Where a lane's scores are: rows `row` and `row` + 8 of (sequence b, head h), columns column + 8 · (i / 4) + i % 2.
struct PairsAt {
  int b, h, row, rows, position, column, k_len;
};

// tanh by one exponential: its absolute error is a rounding of 1, far below that of 16-bit products.
MH_DEVICE float tanh_fast(float x) { return 1.f - __fdividef(2.f, exp2_fast(2 * kLog2e * x) + 1.f); }

template <class B, int N>
MH_DEVICE void read_bias(float (&bias)[N], const B* row0, const B* row1, int64_t step, const PairsAt& at) {
  const bool near = at.row < at.rows, far = at.row + 8 < at.rows;
#pragma unroll
  for (int i = 0; i < N; ++i) {
    const int j = 8 * (i / 4) + (i & 1);
    const bool inside = at.column + j < at.k_len && ((i >> 1) & 1 ? far : near);
    bias[i] = inside ? load((i >> 1) & 1 ? row1 : row0, j * step) : 0.f;
  }
}

// The dense bias of a block, before its products are there: read afterwards, its latency is all that the block waits
// for.
template <int N>
MH_DEVICE void fetch_bias(float (&bias)[N], const Options& o, const PairsAt& at) {
  if (!o.bias) return;
  const int64_t step = o.bias.stride[3], row0 = o.bias.at(at.b, at.h, at.row, at.column),
                row1 = row0 + 8 * o.bias.stride[2];
  auto of_type = [&](const auto* data) { read_bias(bias, data + row0, data + row1, step, at); };
  if (o.bias.type == Element::f32) of_type(static_cast<const float*>(o.bias.data));
  if (o.bias.type == Element::bf16) of_type(static_cast<const __nv_bfloat16*>(o.bias.data));
  if (o.bias.type == Element::f16) of_type(static_cast<const __half*>(o.bias.data));
}

// From products to scores in base e. What a dense mask or documents drop becomes -inf; what lies past the rows or keys
// is not read.
template <int N>
MH_DEVICE void score_pairs(float (&s)[N], const float (&bias)[N], const Options& o, float scale, const PairsAt& at) {
#pragma unroll
  for (int i = 0; i < N; ++i) s[i] *= scale;
  if (o.cap > 0) {
    const float inverse = 1.f / o.cap;
#pragma unroll
    for (int i = 0; i < N; ++i) s[i] = o.cap * tanh_fast(s[i] * inverse);
  }
  auto each = [&](auto&& change) {
#pragma unroll
    for (int i = 0; i < N; ++i) {
      const int row = at.row + 8 * ((i >> 1) & 1), j = at.column + 8 * (i / 4) + (i & 1);
      if (row < at.rows && j < at.k_len) change(s[i], row, j);
    }
  };
  if (o.slopes) {
    const float slope = o.slopes[at.h], distance = static_cast<float>(at.position + at.row - at.column);
#pragma unroll
    for (int i = 0; i < N; ++i)
      s[i] = fmaf(-slope, fabsf(distance + static_cast<float>(8 * ((i >> 1) & 1) - 8 * (i / 4) - (i & 1))), s[i]);
  } else if (o.relative) {
    each([&](float& x, int row, int j) { x += relative_bias(o, at.h, at.position + row - j); });
  }
  if (o.bias) {
#pragma unroll
    for (int i = 0; i < N; ++i) s[i] += bias[i];
  }
  if (o.q_documents) {
    const int *of_rows = static_cast<const int*>(o.q_documents.data) + at.b * o.q_documents.stride[0],
              *of_keys = static_cast<const int*>(o.k_documents.data) + at.b * o.k_documents.stride[0];
    each([&](float& x, int row, int j) {
      if (of_rows[row * o.q_documents.stride[1]] != of_keys[j * o.k_documents.stride[1]]) x = -INFINITY;
    });
  }
  for (int n = 0; n < o.dense_count; ++n) {
    const Array& where = o.dense[n].where;
    const uint8_t* base = static_cast<const uint8_t*>(where.data) + where.at(at.b, at.h, 0, 0);
    const bool keep = o.dense[n].keep;
    each([&](float& x, int row, int j) {
      if ((base[row * where.stride[2] + j * where.stride[3]] != 0) != keep) x = -INFINITY;
    });
  }
}

// Four words a lane, transposed in each group of four lanes: lane q then has word q of each.
MH_DEVICE void transpose_quad(uint32_t (&w)[4], int lane) {
  const bool high = lane & 2, odd = lane & 1;
  uint32_t x0 = high ? w[0] : w[2], x1 = high ? w[1] : w[3];
  x0 = __shfl_xor_sync(~0u, x0, 2);
  x1 = __shfl_xor_sync(~0u, x1, 2);
  if (high)
    w[0] = x0, w[1] = x1;
  else
    w[2] = x0, w[3] = x1;
  uint32_t y0 = odd ? w[0] : w[1], y1 = odd ? w[2] : w[3];
  y0 = __shfl_xor_sync(~0u, y0, 1);
  y1 = __shfl_xor_sync(~0u, y1, 1);
  if (odd)
    w[0] = y0, w[2] = y1;
  else
    w[1] = y0, w[3] = y1;
}

// Weights times the dropout factor. The counter gives 8 keys of a row; each lane of four works out another 8 and they
// swap.
template <int N>
MH_DEVICE void drop_out(float (&s)[N], const Options& o, const PairsAt& at, int lane) {
  static_assert(N % 16 == 0);
  if (o.dropout_threshold == 0) return;
  const float factor = 65536.f / (65536.f - static_cast<float>(o.dropout_threshold));
#pragma unroll
  for (int r = 0; r < 2; ++r)
#pragma unroll
    for (int c = 0; c < N / 16; ++c) {
      Words words =
          philox(o.dropout_seed, at.b, at.h, at.row + 8 * r, (at.column - 2 * (lane & 3)) / 8 + 4 * c + (lane & 3));
      transpose_quad(words.word, lane);
#pragma unroll
      for (int g = 0; g < 4; ++g)
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          float& x = s[4 * (4 * c + g) + 2 * r + e];
          x = (words.word[g] >> (16 * e) & 0xFFFFu) < o.dropout_threshold ? 0.f : x * factor;
        }
    }
}

}  // namespace mh::kernels::cuda
