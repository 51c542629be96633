// The second pass of decode over the cache: o += p · v.
#pragma once

#include "multihead/kernels/cpu/attention/decode/rows.inl"
#include "multihead/kernels/cpu/attention/fma/rows.inl"
#include "multihead/kernels/cpu/vector_math.inl"

namespace decode {

// Where several passes share the rows of a wide head, each fetches its part of the rows that come after, in their order
// (Zen 4 from DRAM, width 256, four query rows: 0.56 of plain read bandwidth in f32 and 0.64 in bf16, against 0.38 and
// 0.44).
struct Ahead {
  Run rows;
  int64_t share = 0;  // rows to a pass

  Run take() {
    const int64_t n = smaller(share, rows.count);
    const Run mine = rows.slice(0, n);
    rows = rows.slice(n, rows.count - n);
    return mine;
  }
};

// o[n][…] += Σ_j p[n][j] · v[j][…] for N rows and C units of v from element `at` on, the last of them at element
// `last`.
template <class T, int N, int C>
struct AddValues {
  static void run(const RowShape& shape, const Run& values, const float* p, int64_t at, int64_t last, float* o,
                  const Run& ahead) {
    using Vector = Wide<T, N>;
    constexpr WideTag<T, N> tag;
    constexpr int kStep = kWideLanes<T, N>, kP = kWideParts<T, N>, kUnit = kP * kStep, kVectors = C * kP;
    const int64_t padded = shape.padded();
    Vector sum[N][kVectors];
#pragma GCC unroll 4
    for (int n = 0; n < N; ++n) {
#pragma GCC unroll 16
      for (int c = 0; c < kVectors; ++c) sum[n][c] = hn::Load(tag, o + n * padded + at + c * kStep);
    }
    const char* row = values.row;
    for (int64_t j = 0; j < values.count; ++j, row += values.stride) {
      const T* v = reinterpret_cast<const T*>(row);
      Vector weight[N];
#pragma GCC unroll 4
      for (int n = 0; n < N; ++n) weight[n] = hn::Set(tag, p[n * kStrip + j]);
#pragma GCC unroll 16
      for (int c = 0; c < C; ++c) {
        Vector e[kP];
        load_parts(c == C - 1 ? v + last : v + at + c * kUnit, e);
#pragma GCC unroll 2
        for (int k = 0; k < kP; ++k) {
#pragma GCC unroll 4
          for (int n = 0; n < N; ++n) sum[n][c * kP + k] = hn::MulAdd(e[k], weight[n], sum[n][c * kP + k]);
        }
      }
      if (j >= ahead.count) continue;
      for (int64_t x = 0; x < shape.bytes(); x += 64) __builtin_prefetch(ahead.row + j * ahead.stride + x, 0, 2);
    }
#pragma GCC unroll 4
    for (int n = 0; n < N; ++n) {
#pragma GCC unroll 16
      for (int c = 0; c < kVectors; ++c) hn::Store(sum[n][c], tag, o + n * padded + at + c * kStep);
    }
  }
};

// Units from number `from` on, C at a time, then the rest.
template <class T, int N, int C>
void add_units(const RowShape& shape, const Run& values, const float* p, int64_t from, float* o, Ahead& ahead) {
  const int64_t units = shape.units() - from;
  if constexpr (C > 1) {
    if (units < C) return add_units<T, N, C - 1>(shape, values, p, from, o, ahead);
  }
  const int64_t at = from * shape.unit, next = at + (C - 1) * shape.unit;
  const int64_t last = shape.tail && units == C ? shape.width - shape.unit : next;
  AddValues<T, N, C>::run(shape, values, p, at, last, o, ahead.take());
  if (units > C) add_units<T, N, C>(shape, values, p, from + C, o, ahead);
}

// N rows at a time, with as many units as half the registers hold.
template <class T, int N>
void add_group(const RowShape& shape, const Run& values, const float* p, int64_t count, float* o) {
  constexpr int kMost = kRegisters / 2 / N / kWideParts<T, N>, kAlone = kRegisters / 2 / kWideParts<T, 1>;
  const int64_t width = shape.padded(), columns = (shape.units() + kMost - 1) / kMost;
  const int64_t passes = (count / N + count % N) * columns, step = passes > 1 ? shared_keys(shape) : values.count;
  for (int64_t j = 0; j < values.count; j += step) {
    const int64_t after = smaller(j + step, values.count);
    const Run some = values.slice(j, after - j);
    Ahead ahead;
    if (columns > 1) ahead = {values.slice(after, smaller(step, values.count - after)), (step + passes - 1) / passes};
    int64_t r = 0;
    for (; r + N <= count; r += N) add_units<T, N, kMost>(shape, some, p + r * kStrip + j, 0, o + r * width, ahead);
    if constexpr (N > 1) {
      for (; r < count; ++r) add_units<T, 1, kAlone>(shape, some, p + r * kStrip + j, 0, o + r * width, ahead);
    }
  }
}

// o[r] += Σ_j p[r][j] · v[j] for `count` rows, for each of them in the order of the keys. Whole rows of v at a time
// where the registers allow it, as in dot_rows; a head of 64 leaves room for four query rows.
template <class T>
void add_run(const RowShape& shape, const Run& values, const float* p, int64_t count, float* o) {
  if (count == 1) return add_group<T, 1>(shape, values, p, count, o);
  if constexpr (kRegisters == 32) {
    if (shape.units() * kParts<T> <= 4) return add_group<T, 4>(shape, values, p, count, o);
  }
  return add_group<T, 2>(shape, values, p, count, o);
}

}  // namespace decode
