// Decode of bf16 by products of pairs: two elements of a key at a time, then two keys at a time, their weights rounded
// to bf16. A product of pairs adds its upper half first and rounds in between (Zen 4): with the earlier key there, sums
// run in the order of the keys, and their bits do not depend on where a run is cut.
#pragma once

#include "multihead/kernels/cpu/attention/decode/add.inl"
#include "multihead/kernels/cpu/attention/decode/chunk.inl"
#include "multihead/kernels/cpu/attention/decode/dot.inl"
#include "multihead/kernels/cpu/attention/decode/rows.inl"
#include "multihead/kernels/cpu/vector_math.inl"

namespace decode {

// Two elements of a row, one lane of a product.
struct Pair {
  bf16 low, high;
};
HWY_INLINE void load_parts(const Pair* p, V (&parts)[1]) {
  parts[0] = hn::LoadU(f32, reinterpret_cast<const float*>(p));
}

inline void query_pairs(const View& q, int64_t at, const RowShape& shape, float* to) {
  const bf16* from = static_cast<const bf16*>(q.data) + at;
  const int64_t first = in_place(shape);
  memcpy(to, from, static_cast<size_t>(first) * sizeof(Pair));
  for (int64_t d = first; d < shape.width; ++d) memcpy(to + place_of(shape, d), from + 2 * d, sizeof(Pair));
}

template <>
struct Products<Pair> {
  static HWY_INLINE V add(V e, V x, V sum) {
    return V{_mm512_dpbf16_ps(sum.raw, (__m512bh)_mm512_castps_si512(e.raw), (__m512bh)_mm512_castps_si512(x.raw))};
  }
};

// Rows of bf16, two of them a product.
struct RowPair;
template <>
constexpr int kParts<RowPair> = 2;

// p[n] from the weight of a key to that of a pair: the key's own above, its successor's below.
inline void pair_weights(int64_t keys, float* p) {
  const auto rounded = [](const float* x) {
    return _mm512_cvtepu16_epi32((__m256i)_mm512_cvtneps_pbh(_mm512_loadu_ps(x)));
  };
  p[keys] = 0;
  for (int64_t n = 0; n < keys; n += kLanes) {
    _mm512_store_si512(p + n, _mm512_or_si512(_mm512_slli_epi32(rounded(p + n), 16), rounded(p + n + 1)));
  }
}

template <int N, int C>
struct AddValues<RowPair, N, C> {
  static void run(const RowShape& shape, const Run& values, const float* p, int64_t at, int64_t last, float* o,
                  const Run& ahead) {
    const int64_t padded = shape.padded();
    V sum[N][2 * C];
#pragma GCC unroll 8
    for (int n = 0; n < N; ++n) {
#pragma GCC unroll 16
      for (int c = 0; c < 2 * C; ++c) sum[n][c] = hn::Load(f32, o + n * padded + at + c * kLanes);
    }
    const auto unit = [&](const char* row, int c) HWY_ATTR {
      return _mm512_loadu_si512(reinterpret_cast<const bf16*>(row) + (c == C - 1 ? last : at + c * 2 * kLanes));
    };
    const char* row = values.row;
    int64_t j = 0;
    for (; j + 2 <= values.count; j += 2, row += 2 * values.stride) {
      __m512i first[C];
#pragma GCC unroll 16
      for (int c = 0; c < C; ++c) first[c] = unit(row, c);
      asm volatile("" ::: "memory");  // keeps the compiler from reading two rows in step
      const Weights weights(p + j, ~0u);
#pragma GCC unroll 16
      for (int c = 0; c < C; ++c) add(weights, first[c], unit(row + values.stride, c), sum, c);
      for (int64_t k = j; k < smaller(j + 2, ahead.count); ++k) {
        for (int64_t x = 0; x < shape.bytes(); x += 64) __builtin_prefetch(ahead.row + k * ahead.stride + x, 0, 2);
      }
    }
    if (j < values.count) {
      const Weights alone(p + j, 0xffff0000u);
#pragma GCC unroll 16
      for (int c = 0; c < C; ++c) add(alone, unit(row, c), _mm512_setzero_si512(), sum, c);
    }
#pragma GCC unroll 8
    for (int n = 0; n < N; ++n) {
#pragma GCC unroll 16
      for (int c = 0; c < 2 * C; ++c) hn::Store(sum[n][c], f32, o + n * padded + at + c * kLanes);
    }
  }

 private:
  // Of two keys, for each query row.
  struct Weights {
    V of[N];
    HWY_INLINE Weights(const float* p, uint32_t which) {
#pragma GCC unroll 8
      for (int n = 0; n < N; ++n) {
        uint32_t bits;
        memcpy(&bits, p + n * kStrip, sizeof bits);
        of[n] = hn::BitCast(f32, hn::Set(hn::ScalableTag<uint32_t>(), bits & which));
      }
    }
  };

  static HWY_INLINE void add(const Weights& weights, __m512i first, __m512i second, V (&sum)[N][2 * C], int c) {
    const V low{_mm512_castsi512_ps(_mm512_unpacklo_epi16(second, first))};
    const V high{_mm512_castsi512_ps(_mm512_unpackhi_epi16(second, first))};
#pragma GCC unroll 8
    for (int n = 0; n < N; ++n) {
      sum[n][2 * c] = Products<Pair>::add(low, weights.of[n], sum[n][2 * c]);
      sum[n][2 * c + 1] = Products<Pair>::add(high, weights.of[n], sum[n][2 * c + 1]);
    }
  }
};

// One query row waits for memory, not for products: it takes key by key, with the same bits (Zen 4, bf16 of one head:
// 0.86 of plain read bandwidth from L3 and 0.96 from DRAM, against 0.83 and 0.95 by pairs).
template <int C>
struct AddValues<RowPair, 1, C> {
  static void run(const RowShape&, const Run& values, const float* p, int64_t at, int64_t last, float* o, const Run&) {
    V sum[2 * C];
#pragma GCC unroll 16
    for (int c = 0; c < 2 * C; ++c) sum[c] = hn::Load(f32, o + at + c * kLanes);
    const char* row = values.row;
    for (int64_t j = 0; j < values.count; ++j, row += values.stride) {
      uint32_t bits;
      memcpy(&bits, p + j, sizeof bits);
      const V weight = hn::BitCast(f32, hn::Set(hn::ScalableTag<uint32_t>(), bits & 0xffff0000u));
#pragma GCC unroll 16
      for (int c = 0; c < C; ++c) {
        const bf16* v = reinterpret_cast<const bf16*>(row) + (c == C - 1 ? last : at + c * 2 * kLanes);
        const __m512i x = _mm512_loadu_si512(v), zero = _mm512_setzero_si512();
        const V low{_mm512_castsi512_ps(_mm512_unpacklo_epi16(zero, x))};
        const V high{_mm512_castsi512_ps(_mm512_unpackhi_epi16(zero, x))};
        sum[2 * c] = hn::MulAdd(low, weight, sum[2 * c]);
        sum[2 * c + 1] = hn::MulAdd(high, weight, sum[2 * c + 1]);
      }
    }
#pragma GCC unroll 16
    for (int c = 0; c < 2 * C; ++c) hn::Store(sum[c], f32, o + at + c * kLanes);
  }
};

inline void use_pairs(const AttentionForwardArgs& a, DecodePlan& plan) {
  if (a.q.dtype == DType::bf16 && a.kv.k.dtype == DType::bf16 && a.q.size[3] % 2 == 0) {
    plan.k = row_shape(a.q.size[3] / 2, sizeof(Pair), kLanes);
    plan.dot = dot_run<Pair>;
    plan.query = query_pairs;
  }
  if (a.o.dtype == DType::bf16 && a.kv.v.dtype == DType::bf16) {
    plan.v.fours = true;
    plan.add = add_run<RowPair>;
    plan.weights = pair_weights;
  }
}

}  // namespace decode
