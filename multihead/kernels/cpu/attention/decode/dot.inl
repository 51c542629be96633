// The first pass of decode over the cache: scores of two or four keys at a time.
#pragma once

#include "multihead/kernels/cpu/attention/decode/rows.inl"
#include "multihead/kernels/cpu/vector_math.inl"

namespace decode {

// Keys taken at a time by N query rows; their sums leave room in registers for q.
constexpr int keys_at_once(int rows) { return rows <= 2 ? 4 : 2; }

// s[n][0 … K) from the sums of N rows with K keys.
template <class D, int kC, int N, int K>
HWY_INLINE void store_sums(D d, const hn::Vec<D> (&sum)[kC][N][K], float* s) {
  const auto four_sums = [&](int n, int m, int k) HWY_ATTR __attribute__((always_inline)) {
    auto x = sums_in_blocks(d, sum[0][n][0], sum[0][n][1], sum[0][m][k], sum[0][m][k + 1]);
    if constexpr (kC == 2)
      x = hn::Add(x, sums_in_blocks(d, sum[1][n][0], sum[1][n][1], sum[1][m][k], sum[1][m][k + 1]));
    return fold_to_four(d, x);
  };
  if constexpr (K == 4) {
    const hn::FixedTag<float, 4> four;
#pragma GCC unroll 8
    for (int n = 0; n < N; ++n) hn::StoreU(four_sums(n, n, 2), four, s + n * kStrip);
  } else {
    const hn::FixedTag<float, 2> two;
#pragma GCC unroll 8
    for (int n = 0; n < N; n += 2) {
      const auto sums = four_sums(n, n + 1, 0);
      hn::StoreU(hn::LowerHalf(two, sums), two, s + n * kStrip);
      hn::StoreU(hn::UpperHalf(two, sums), two, s + (n + 1) * kStrip);
    }
  }
}

// dot[c][n] += a unit of a key times that of row n of q, given where it starts.
template <class T, class D, int kP, int kC, int N>
HWY_INLINE void add_products(D d, const hn::Vec<D> (&e)[kP], const float* q, int64_t width, hn::Vec<D> (&dot)[kC][N]) {
  constexpr int kStep = static_cast<int>(hn::MaxLanes(D()));
#pragma GCC unroll 2
  for (int p = 0; p < kP; ++p) {
#pragma GCC unroll 8
    for (int n = 0; n < N; ++n)
      dot[p % kC][n] = Products<T>::add(e[p], hn::Load(d, q + n * width + p * kStep), dot[p % kC][n]);
  }
}

// s[n][j] = q row n · key j. Each key is read from its first byte to its last: rows read in step are a pattern the
// prefetchers do not know (Zen 4, f32 from DRAM: 0.46 of plain read bandwidth). kUnits > 0: that many units, no tail,
// and as many rows of q as there are registers stay in them.
template <class T, int N, int kUnits>
void dot_rows(const RowShape& shape, const Run& keys, const float* q, const float* head, float* s) {
  using Vector = Wide<T, N>;
  constexpr WideTag<T, N> tag;
  constexpr int K = keys_at_once(N), kStep = kWideLanes<T, N>, kP = kWideParts<T, N>, kUnit = kP * kStep,
                kVectors = kUnits * kP;
  constexpr int kRoom = kUnits > 0 ? (kRegisters - 4 - N * K) / kVectors : 0, kHeld = kRoom < N ? kRoom : N;
  constexpr int kC = kChains<T, N>;
  const int64_t width = shape.padded(), end = shape.full * kUnit;
  Vector held[kHeld > 0 ? kHeld : 1][kVectors > 0 ? kVectors : 1];
#pragma GCC unroll 8
  for (int n = 0; n < kHeld; ++n) {
#pragma GCC unroll 16
    for (int c = 0; c < kVectors; ++c) held[n][c] = hn::Load(tag, q + n * width + c * kStep);
  }
  const char* row = keys.row;
  const int64_t stride = keys.stride, last = keys.count - 1;
  for (int64_t j = 0; j <= last; j += K) {
    Vector sum[kC][N][K];
#pragma GCC unroll 4
    for (int k = 0; k < K; ++k) {
      const T* key = reinterpret_cast<const T*>(row);
      row += j + k < last ? stride : 0;
      asm volatile("" ::: "memory");  // keeps the compiler from reading two keys in step
      Vector e[kP], dot[kC][N];
#pragma GCC unroll 8
      for (int n = 0; n < kC * N; ++n) dot[n / N][n % N] = hn::Zero(tag);
      if constexpr (kUnits > 0) {
#pragma GCC unroll 8
        for (int c = 0; c < kUnits; ++c) {
          load_parts(key + c * kUnit, e);
#pragma GCC unroll 2
          for (int p = 0; p < kP; ++p) {
            const int at = c * kP + p;
#pragma GCC unroll 8
            for (int n = 0; n < N; ++n) {
              const Vector x = n < kHeld ? held[n][at] : hn::Load(tag, q + n * width + at * kStep);
              dot[p % kC][n] = Products<T>::add(e[p], x, dot[p % kC][n]);
            }
          }
        }
      } else {
        for (int64_t at = 0; at < end; at += kUnit) {
          load_parts(key + at, e);
          add_products<T>(tag, e, q + at, width, dot);
        }
        if (shape.tail) {
          load_parts(key + shape.width - kUnit, e);
#pragma GCC unroll 2
          for (int p = 0; p < kP; ++p) e[p] = hn::And(e[p], hn::Load(tag, head + p * kStep));
          add_products<T>(tag, e, q + end, width, dot);
        }
      }
#pragma GCC unroll 8
      for (int n = 0; n < kC * N; ++n) sum[n / N][n % N][k] = dot[n / N][n % N];
    }
    store_sums(tag, sum, s + j);
  }
}

template <class T, int kUnits>
void dot_group(const RowShape& shape, const Run& keys, const float* q, int64_t count, const float* head, float* s) {
  constexpr int kMost = kRegisters / 4;
  const int64_t width = shape.padded(), step = count > kMost ? shared_keys(shape) : keys.count;
  for (int64_t j = 0; j < keys.count; j += step) {
    const Run some = keys.slice(j, smaller(step, keys.count - j));
    int64_t r = 0;
    const auto pass = [&]<int N>() {
      for (; r + N <= count; r += N) dot_rows<T, N, kUnits>(shape, some, q + r * width, head, s + r * kStrip + j);
    };
    if constexpr (kMost == 8) pass.template operator()<8>();
    pass.template operator()<4>();
    pass.template operator()<2>();
    pass.template operator()<1>();
  }
}

// The scores of a run: s[r][j] = q row r · key j; up to three scores past them are overwritten.
template <class T>
void dot_run(const RowShape& shape, const Run& keys, const float* q, int64_t count, const float* head, float* s) {
  constexpr int kEight = 8 / kParts<T>, kFour = 4 / kParts<T>;
  if constexpr (kRegisters == 32) {
    if (!shape.tail && shape.full == kEight) return dot_group<T, kEight>(shape, keys, q, count, head, s);
    if (!shape.tail && shape.full == kFour) return dot_group<T, kFour>(shape, keys, q, count, head, s);
  }
  return dot_group<T, 0>(shape, keys, q, count, head, s);
}

}  // namespace decode
