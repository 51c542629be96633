// Rotary positions: pairs turned by the angles of a table.
#pragma once

#include "multihead/kernels/cpu/rows/vectors.inl"
#include "multihead/kernels/cpu/vector_math.inl"

// Halves side by side: the pair of n is n + pairs.
template <class T>
HWY_INLINE void turn_halves(const T* x, T* y, const float* cos, const float* sin, int64_t pairs, V sign) {
  for_vectors(pairs, [&](int64_t at, auto extent) {
    const V a = get(x + at, extent), b = get(x + pairs + at, extent);
    const V c = get(cos + at, extent), s = hn::Mul(get(sin + at, extent), sign);
    put(hn::NegMulAdd(b, s, hn::Mul(a, c)), y + at, extent);
    put(hn::MulAdd(a, s, hn::Mul(b, c)), y + pairs + at, extent);
  });
}

// Neighbours: lanes 2n and 2n + 1, whose entries of the tables stand in the same lanes.
template <class T>
HWY_INLINE void turn_neighbours(const T* x, T* y, const float* cos, const float* sin, int64_t pairs, V sign) {
  for_vectors(2 * pairs, [&](int64_t at, auto extent) {
    const V both = get(x + at, extent), s = hn::Mul(get(sin + at, extent), sign);
    put(hn::MulAdd(hn::Shuffle2301(both), s, hn::Mul(both, get(cos + at, extent))), y + at, extent);
  });
}

void rope(const RopeArgs& args, Queue&) {
  const int64_t heads = args.x.size[1], width = args.x.size[2], pairs = args.pairs;
  const int64_t entries = args.interleaved ? 2 * pairs : pairs;
  const V sign = hn::Set(f32, args.backwards ? -1.0f : 1.0f);
  with_float(args.x.dtype, [&]<class T>(Of<T>) {
    for_rows(args.x.size[0], heads * width, [&](int64_t n) {
      const float *cos = args.cos + args.positions[n] * entries, *sin = args.sin + args.positions[n] * entries;
      for (int64_t h = 0; h < heads; ++h) {
        const T* x = static_cast<const T*>(args.x.data) + n * args.x.stride[0] + h * args.x.stride[1];
        T* y = static_cast<T*>(args.y.data) + n * args.y.stride[0] + h * args.y.stride[1];
        if (args.interleaved) {
          turn_neighbours(x, y, cos, sin, pairs, sign);
        } else {
          turn_halves(x, y, cos, sin, pairs, sign);
        }
        if (2 * pairs < width) memcpy(y + 2 * pairs, x + 2 * pairs, static_cast<size_t>(width - 2 * pairs) * sizeof(T));
      }
    });
  });
}
