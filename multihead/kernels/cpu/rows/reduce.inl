// Sums and maxima over the middle axis of (outer, middle, inner).
#pragma once

#include "multihead/kernels/cpu/rows/vectors.inl"
#include "multihead/kernels/cpu/vector_math.inl"

template <bool Max>
HWY_INLINE V reduce_two(V a, V b) {
  if constexpr (Max) return hn::IfThenElse(hn::Or(hn::Gt(a, b), hn::IsNaN(a)), a, b);
  return hn::Add(a, b);
}

template <bool Max>
constexpr float kReduceStart = Max ? kNone : 0.0f;

// A maximum over lanes that keeps NaN.
template <bool Max>
HWY_INLINE float reduce_lanes(const Chains& chains) {
  const V all =
      reduce_two<Max>(reduce_two<Max>(chains.of[0], chains.of[1]), reduce_two<Max>(chains.of[2], chains.of[3]));
  if constexpr (!Max) return hn::GetLane(hn::SumOfLanes(f32, all));
  if (!hn::AllFalse(f32, hn::IsNaN(all))) return __builtin_nanf("");
  return hn::GetLane(hn::MaxOfLanes(f32, all));
}

// n elements side by side.
template <bool Max, class T>
HWY_INLINE float reduce_run(const T* x, int64_t n) {
  Chains chains(kReduceStart<Max>);
  const V none = hn::Set(f32, kReduceStart<Max>);
  for_chains(n, [&](int64_t at, auto extent, int chain) {
    chains.of[chain] = reduce_two<Max>(chains.of[chain], keep(get(x + at, extent), none, extent));
  });
  return reduce_lanes<Max>(chains);
}

// to[c] = over `rows` rows of `width` elements, `apart` elements from one to the next. Eight rows at a time: the reads
// run along rows, as memory does, and `to` is not written for each.
template <bool Max, class T>
HWY_INLINE void reduce_rows(const T* x, int64_t rows, int64_t apart, int64_t width, float* to) {
  for (int64_t first = 0; first < larger(rows, 1); first += 8) {
    const int64_t count = smaller(8, rows - first);
    const T* from = x + first * apart;
    for_vectors(width, [&](int64_t at, auto extent) {
      V all = first == 0 ? hn::Set(f32, kReduceStart<Max>) : get(to + at, extent);
      for (int64_t row = 0; row < count; ++row) all = reduce_two<Max>(all, get(from + row * apart + at, extent));
      put(all, to + at, extent);
    });
  }
}

// Columns of one task: their sums stay in the first cache.
constexpr int64_t kReduceColumns = 1024;

template <bool Max, class T>
inline void reduce_type(const ReduceArgs& args) {
  const T* x = static_cast<const T*>(args.x);
  const int64_t middle = args.middle, inner = args.inner;
  // Blocks of the middle axis: as many elements as a task wants, and never so many blocks that adding them costs more.
  const int64_t each = inner == 1 ? kElementsPerTask : larger(32, blocks_of(middle, 64));
  const int64_t blocks = larger(1, blocks_of(middle, each)), slices = inner == 1 ? 1 : blocks_of(inner, kReduceColumns);
  Scratch scratch;
  float* parts = blocks > 1 ? scratch.take<float>(args.outer * blocks * inner) : args.y;
  for_rows(args.outer * blocks * slices, smaller(each, middle) * smaller(kReduceColumns, inner), [&](int64_t task) {
    const int64_t slice = task % slices, block = task / slices % blocks, out = task / slices / blocks;
    const int64_t first = slice * kReduceColumns, begin = block * each, rows = smaller(each, middle - begin);
    const T* from = x + (out * middle + begin) * inner + first;
    float* to = parts + (out * blocks + block) * inner + first;
    if (inner == 1) {
      *to = reduce_run<Max>(from, rows);
    } else {
      reduce_rows<Max>(from, rows, inner, smaller(kReduceColumns, inner - first), to);
    }
  });
  if (blocks == 1) return;
  for_rows(args.outer, blocks * inner, [&](int64_t out) {
    reduce_rows<Max>(parts + out * blocks * inner, blocks, inner, inner, args.y + out * inner);
  });
}

void reduce(const ReduceArgs& args, Queue&) {
  with_float(args.x_type, [&]<class T>(Of<T>) {
    if (args.max) {
      reduce_type<true, T>(args);
    } else {
      reduce_type<false, T>(args);
    }
  });
}
