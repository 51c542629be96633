// Rows that are mostly zeros times a matrix: two rows at a time, over the k at which one of them is not 0.
//
// Of the feed-forward's middle in models/en-de 80 to 94 of 100 elements are 0.
#pragma once

#include "multihead/kernels/cpu/rows/vectors.inl"
#include "multihead/kernels/cpu/vector_math.inl"

// Rows of a group: four fill nearly twice as many places (Zen 4, 13 of 100 elements not 0: 10 against 9 us a row).
constexpr int kSparseRows = 2;
constexpr int kSparseVectors = 4;
constexpr int64_t kSparseWidth = kSparseVectors * kLanes;
static_assert(kSparsePanel % kSparseWidth == 0, "a panel is a whole number of tiles");

// What is left of up to kSparseRows rows.
struct FilledRows {
  float* values;  // row after row, `apart` floats from one to the next
  int32_t* at;    // the k of each
  int64_t rows, apart, count;
};

inline void gather_filled(const View& x, int64_t first, FilledRows& out) {
  out.count = 0;
  for_vectors(x.size[1], [&](int64_t k, auto extent) {
    V each[kSparseRows];
    M filled = hn::Ne(hn::Zero(f32), hn::Zero(f32));
    for (int64_t r = 0; r < out.rows; ++r) {
      each[r] = get(row_of<float>(x, first + r) + k, extent);
      filled = hn::Or(filled, hn::Not(hn::Eq(each[r], hn::Zero(f32))));  // Ne is false for NaN on x86
    }
    if (hn::AllFalse(f32, filled)) return;
    // A store past the last is overwritten by the next: there is room for a vector behind each row.
    for (int64_t r = 0; r < out.rows; ++r)
      hn::StoreU(hn::Compress(each[r], filled), f32, out.values + r * out.apart + out.count);
    const V places = hn::BitCast(f32, hn::Iota(i32, static_cast<int32_t>(k)));
    hn::StoreU(hn::BitCast(i32, hn::Compress(places, filled)), i32, out.at + out.count);
    out.count += static_cast<int64_t>(hn::CountTrue(f32, filled));
  });
}

// R rows times kSparseWidth columns of a panel, w being the first of them.
template <int R>
HWY_NOINLINE void multiply_filled(const FilledRows& x, const float* HWY_RESTRICT w, float* HWY_RESTRICT sums) {
  V acc[R][kSparseVectors];
#pragma GCC unroll 4
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
    for (int c = 0; c < kSparseVectors; ++c) acc[r][c] = hn::Zero(f32);
  const float* HWY_RESTRICT values = x.values;
  const int32_t* HWY_RESTRICT at = x.at;
  const int64_t apart = x.apart;
  for (int64_t n = 0; n < x.count; ++n) {
    const float* row = w + at[n] * kSparsePanel;
    V column[kSparseVectors];
#pragma GCC unroll 4
    for (int c = 0; c < kSparseVectors; ++c) column[c] = hn::Load(f32, row + c * kLanes);
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) {
      const V value = hn::Set(f32, values[r * apart + n]);
#pragma GCC unroll 4
      for (int c = 0; c < kSparseVectors; ++c) acc[r][c] = hn::MulAdd(value, column[c], acc[r][c]);
    }
  }
#pragma GCC unroll 4
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
    for (int c = 0; c < kSparseVectors; ++c) hn::Store(acc[r][c], f32, sums + r * kSparseWidth + c * kLanes);
}

template <int R = kSparseRows>
inline void multiply_filled_rows(const FilledRows& x, const float* w, float* sums) {
  if constexpr (R > 1) {
    if (x.rows < R) return multiply_filled_rows<R - 1>(x, w, sums);
  }
  multiply_filled<R>(x, w, sums);
}

// Bias and residual, and the way to y.
inline void finish_filled(const SparseLinearArgs& args, const float* sums, int64_t row, int64_t column) {
  const float* bias = args.bias ? static_cast<const float*>(args.bias.data) + column : nullptr;
  const float* residual = args.residual ? row_of<float>(args.residual, row) + column : nullptr;
  float* y = row_of<float>(args.y, row) + column;
  for_vectors(smaller(kSparseWidth, args.n - column), [&](int64_t c, auto extent) {
    V sum = hn::Load(f32, sums + c);
    if (bias) sum = hn::Add(sum, get(bias + c, extent));
    if (residual) sum = hn::Add(sum, get(residual + c, extent));
    put(sum, y + c, extent);
  });
}

// Rows of a block: a panel is read out of the third cache once for these.
constexpr int64_t kSparseBlock = 128;

inline void sparse_linear_block(const SparseLinearArgs& args, int64_t first, int64_t rows) {
  const int64_t k = args.x.size[1], apart = round_up(k, kLanes) + kLanes, groups = blocks_of(rows, kSparseRows);
  Scratch scratch;
  FilledRows* filled = scratch.take<FilledRows>(groups);
  float* values = scratch.take<float>(groups * kSparseRows * apart);
  int32_t* at = scratch.take<int32_t>(groups * apart);
  for (int64_t g = 0; g < groups; ++g) {
    filled[g] = {values + g * kSparseRows * apart, at + g * apart, smaller(kSparseRows, rows - g * kSparseRows), apart,
                 0};
    gather_filled(args.x, first + g * kSparseRows, filled[g]);
  }
  parallel_for(blocks_of(args.n, kSparsePanel), [&](int64_t panel) {
    HWY_ALIGN float sums[kSparseRows * kSparseWidth];
    const float* w = args.w + panel * kSparsePanel * k;
    const int64_t end = smaller(kSparsePanel, args.n - panel * kSparsePanel);
    for (int64_t g = 0; g < groups; ++g)
      for (int64_t column = 0; column < end; column += kSparseWidth) {
        multiply_filled_rows(filled[g], w + column, sums);
        for (int64_t r = 0; r < filled[g].rows; ++r)
          finish_filled(args, sums + r * kSparseWidth, first + g * kSparseRows + r, panel * kSparsePanel + column);
      }
  });
}

void sparse_linear(const SparseLinearArgs& args, Queue&) {
  const int64_t rows = args.x.size[0];
  if (rows <= kSparseBlock) return sparse_linear_block(args, 0, rows);
  parallel_for(blocks_of(rows, kSparseBlock), [&](int64_t n) {
    sparse_linear_block(args, n * kSparseBlock, smaller(kSparseBlock, rows - n * kSparseBlock));
  });
}
