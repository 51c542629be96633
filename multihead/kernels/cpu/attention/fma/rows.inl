// Rows of queries, keys and values as the kernels want them: f32, in place where they already are.
#pragma once

#include "multihead/kernels/cpu/transpose.inl"
#include "multihead/kernels/cpu/vector_math.inl"

struct Sizes {
  int64_t heads, key_heads, group, key_width, value_width;
};

// v may be null: then the width of the values is 0.
inline Sizes sizes_of(const View& q, const KeyValues& kv) {
  const int64_t heads = q.size[1], key_heads = kv.k.size[1];
  return {heads, key_heads, heads / key_heads, q.size[3], kv.v ? kv.v.size[3] : 0};
}

inline const char* address(const View& x, int64_t a, int64_t b, int64_t c) {
  return static_cast<const char*>(x.data) + (a * x.stride[0] + b * x.stride[1] + c * x.stride[2]) * size_of(x.dtype);
}
inline char* writable(const View& x, int64_t a, int64_t b, int64_t c) { return const_cast<char*>(address(x, a, b, c)); }

// Rows of a head from one on: where it lies and how many bytes on the next one does. (To ask the type for its size row
// by row was a tenth of a call on 32 rows.)
struct RowWalk {
  char* first;
  int64_t step;

  char* at(int64_t r) const { return first + r * step; }
};
inline RowWalk walk(const View& x, int64_t batch, int64_t head, int64_t row) {
  return {writable(x, batch, head, row), x.stride[2] * size_of(x.dtype)};
}

// Asks for `bytes` from `at` on; kWrite: to write them. Into the second cache, where rows a multiple of 4 KiB apart do
// not chase each other out. Always inlined: GCC 12 drops the call of a function that does nothing but prefetch.
template <bool kWrite = false>
HWY_INLINE void ask_for(const void* at, int64_t bytes) {
  const char* line = static_cast<const char*>(at);
  for (int64_t b = 0; b < bytes; b += 64) __builtin_prefetch(line + b, kWrite, 2);
}
// Likewise for rows of a head, which lie far apart, where no prefetcher follows.
template <bool kWrite = false>
HWY_INLINE void ask_for_rows(const View& x, int64_t batch, int64_t head, int64_t first, int64_t count) {
  const RowWalk rows = walk(x, batch, head, first);
  const int64_t bytes = x.size[3] * size_of(x.dtype);
  for (int64_t r = 0; r < count; ++r) ask_for<kWrite>(rows.at(r), bytes);
}

template <class T>
inline T* take(Scratch& scratch, int64_t count) {
  return scratch.take<T>(count);
}

// Σ x². Rows shorter than 2^-60 count as zero for cosine: their square is below 2^-120.
constexpr float kZeroSquare = 0x1p-120f;
inline float square(const float* row, int64_t width) {
  V sum = hn::Zero(f32);
  int64_t c = 0;
  for (; c + kLanes <= width; c += kLanes) {
    const V x = hn::LoadU(f32, row + c);
    sum = hn::MulAdd(x, x, sum);
  }
  float total = hn::GetLane(hn::SumOfLanes(f32, sum));
  for (; c < width; ++c) total += row[c] * row[c];
  return total;
}
// to = row / |row|, by division: a row of one element becomes 1 or -1 exactly. `to` may be `row`.
inline void normalise_row(const float* row, int64_t width, float* to) {
  const float of = square(row, width), norm = of < kZeroSquare ? 0.0f : __builtin_sqrtf(of);
  const V by = hn::Set(f32, norm);
  int64_t c = 0;
  for (; c + kLanes <= width; c += kLanes) {
    hn::StoreU(norm == 0 ? hn::Zero(f32) : hn::Div(hn::LoadU(f32, row + c), by), f32, to + c);
  }
  for (; c < width; ++c) to[c] = norm == 0 ? 0 : row[c] / norm;
}
inline float inverse_norm(float square) {
  return square < kZeroSquare ? 0.0f : static_cast<float>(1 / __builtin_sqrt(static_cast<double>(square)));
}

struct Rows {
  const float* data;
  int64_t stride;
};

// Rows whose stride is a multiple of 4 KiB fall into one set of the L1 cache: read several times, they are copied.
inline bool lies_as_read(const View& x) { return x.dtype == DType::f32 && x.stride[2] * 4 % 4096 != 0; }

// Rows [first, first + count) of the keys or values of one key head, widened into `room` (count × width) unless they
// can be read where they lie.
struct RowSource {
  View rows, scales, pages;
  int64_t sequence, batch, begin, head, width;
  bool normalise;

  bool in_place() const { return lies_as_read(rows) && !pages && !normalise; }

  const char* row(int64_t j, float* scale) const {
    int64_t entry = batch, at = begin + j;
    if (pages) {
      const int64_t page = rows.size[2];
      entry = static_cast<const int32_t*>(pages.data)[sequence * pages.stride[0] + j / page * pages.stride[1]];
      at = j % page;
    }
    if (scales) {
      *scale = static_cast<const float*>(
          scales.data)[entry * scales.stride[0] + head * scales.stride[1] + at * scales.stride[2]];
    }
    return address(rows, entry, head, at);
  }

  Rows fetch(int64_t first, int64_t count, float* room) const {
    float scale = 1;
    if (in_place()) return {reinterpret_cast<const float*>(row(first, &scale)), rows.stride[2]};
    for (int64_t r = 0; r < count; ++r) {
      float* to = room + r * width;
      const char* from = row(first + r, &scale);
      widen_row(rows.dtype, from, width, scale, to);
      if (normalise) normalise_row(to, width, to);
    }
    return {room, width};
  }
};

inline RowSource key_source(const KeyValues& kv, const Scores& scores, const Sequence& s, int64_t number,
                            int64_t head) {
  return {kv.k,   kv.k_scale,   kv.pages,
          number, s.batch,      s.k_begin,
          head,   kv.k.size[3], scores.similarity == Similarity::cosine};
}
inline RowSource value_source(const KeyValues& kv, const Sequence& s, int64_t number, int64_t head) {
  return {kv.v, kv.v_scale, kv.pages, number, s.batch, s.k_begin, head, kv.v.size[3], false};
}
