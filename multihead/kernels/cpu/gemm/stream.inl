// Few rows times a w that lies row after row and did not come packed: w streams past once, the sums wait in the first
// cache.
//
// The order of every element's sum is that of gemm.inl: blocks of kBlockDepth, ascending inside and among them.
#pragma once

#include "multihead/kernels/cpu/gemm/epilogue.inl"
#include "multihead/kernels/cpu/gemm/microkernel.inl"
#include "multihead/kernels/cpu/gemm/pack.inl"
#include "multihead/kernels/cpu/gemm/panels.inl"
#include "multihead/kernels/cpu/philox.inl"
#include "multihead/kernels/cpu/vector_math.inl"

// Columns of one task: runs of 1 or 2 KB in each row of w, and sums of 8 rows in 2 · 16 KB.
constexpr int64_t kStreamColumns = 512;
// Rows of w taken together, so that a sum is loaded and stored once for all of them.
constexpr int64_t kStreamDepth = 8;

template <class T>
HWY_INLINE V load_some(const T* at, int64_t count) {
  if (count >= kLanes) return load_widened(at);
  alignas(64) T lanes[kLanes] = {};
  memcpy(lanes, at, static_cast<size_t>(count) * sizeof(T));
  return load_widened(lanes);
}

// What of w meets one word of a: a row as f32, or two rows as pairs, of which `rows` are there.
template <class T>
HWY_INLINE V stream_words(float, const T* w, int64_t, int64_t, int64_t columns) {
  return load_some(w, columns);
}
#if defined(MH_PAIR_PRODUCTS)
HWY_INLINE PairWords stream_words(uint32_t, const bf16* w, int64_t apart, int64_t rows, int64_t columns) {
  const hn::ScalableTag<uint32_t> u32;
  const PairWords early = hn::ShiftRight<16>(hn::BitCast(u32, load_some(w, columns)));
  return rows > 1 ? hn::Or(early, hn::BitCast(u32, load_some(w + apart, columns))) : early;
}
#endif

// sums[r · kStreamColumns + n] += Σ_k a(k, r) · w[k · apart + n] for `depth` <= kStreamDepth, a as packed words.
template <class T, int R>
void stream_rows(const RowWord<T>* HWY_RESTRICT a, const T* HWY_RESTRICT w, int64_t apart, int64_t depth,
                 int64_t columns, float* HWY_RESTRICT sums) {
  constexpr int64_t kRows = RowWords<T>::kDepth;
  for (int64_t c = 0; c < columns; c += kLanes) {
    V acc[R];
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) acc[r] = hn::Load(f32, sums + r * kStreamColumns + c);
    const auto step = [&](int64_t k, int64_t rows, int64_t count) HWY_ATTR __attribute__((always_inline)) {
      const auto words = stream_words(RowWord<T>(), w + k * apart + c, apart, rows, count);
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) acc[r] = add_products(acc[r], a[k / kRows * R + r], words);
    };
    if (depth == kStreamDepth && c + kLanes <= columns) {
#pragma GCC unroll 8
      for (int64_t k = 0; k < kStreamDepth; k += kRows) step(k, kRows, kLanes);
    } else {
      for (int64_t k = 0; k < depth; k += kRows) step(k, smaller(kRows, depth - k), columns - c);
    }
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) hn::Store(acc[r], f32, sums + r * kStreamColumns + c);
  }
}

template <class T>
using StreamRows = void (*)(const RowWord<T>*, const T*, int64_t, int64_t, int64_t, float*);

template <class T, int R = kTileRows>
StreamRows<T> stream_rows_for(int64_t rows) {
  if constexpr (R > 1) {
    if (rows != R) return stream_rows_for<T, R - 1>(rows);
  }
  return stream_rows<T, R>;
}

inline void add_sums(const float* from, int64_t count, float* to) {
  for (int64_t c = 0; c < count; c += kLanes)
    hn::Store(hn::Add(hn::Load(f32, to + c), hn::Load(f32, from + c)), f32, to + c);
}

// Columns [column, column + columns) of y; `a` is one group of packed rows.
template <class T>
void stream_columns(const GemmArgs& args, const RowWord<T>* a, int64_t rows, int64_t column, int64_t columns) {
  Scratch scratch;
  const int64_t count = rows * kStreamColumns;
  float* sums = scratch.take<float>(count);
  float* block = scratch.take<float>(count);
  const auto stream = stream_rows_for<T>(rows);
  const T* w = static_cast<const T*>(args.w.data) + column;
  memset(sums, 0, static_cast<size_t>(count) * 4);
  for (int64_t begin = 0; begin < args.k; begin += kBlockDepth) {
    const int64_t end = smaller(begin + kBlockDepth, args.k);
    float* to = begin == 0 ? sums : block;
    if (begin > 0) memset(block, 0, static_cast<size_t>(count) * 4);
    for (int64_t k = begin; k < end; k += kStreamDepth)
      stream(a + row_steps<T>(k) * rows, w + k * args.w.stride[0], args.w.stride[0], smaller(kStreamDepth, end - k),
             columns, to);
    if (begin > 0) add_sums(block, count, sums);
  }
  for (int64_t c = 0; c < columns; c += kPanelWidth) {
    const int64_t some = smaller(kPanelWidth, columns - c);
    finish_panel(args, sums + c, kStreamColumns, 0, rows, column + c, some);
  }
}

template <class T>
void stream_plain(const GemmArgs& args, const RowWord<T>* a, int64_t rows) {
  const int64_t tasks = (args.n + kStreamColumns - 1) / kStreamColumns;
  parallel_for(tasks, [&](int64_t task) {
    const int64_t column = task * kStreamColumns;
    stream_columns<T>(args, a, rows, column, smaller(kStreamColumns, args.n - column));
  });
}
