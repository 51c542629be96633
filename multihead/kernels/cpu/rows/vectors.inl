// Walking rows by vectors: whole ones and the part at the end, sums in a fixed order, types, and how rows become tasks.
#pragma once

#include "multihead/kernels/cpu/vector_math.inl"

struct Whole {};
struct Part {
  int64_t count;  // 1 … kLanes - 1
};

// Lanes past a part are 0.
template <class T>
HWY_INLINE V get(const T* from, Whole) {
  return load_widened(from);
}
template <class T>
HWY_INLINE V get(const T* from, Part part) {
  alignas(64) T lanes[kLanes] = {};
  memcpy(lanes, from, static_cast<size_t>(part.count) * sizeof(T));
  return load_widened(lanes);
}
template <class T>
HWY_INLINE void put(V x, T* to, Whole) {
  store_narrowed(x, to);
}
template <class T>
HWY_INLINE void put(V x, T* to, Part part) {
  alignas(64) T lanes[kLanes];
  store_narrowed(x, lanes);
  memcpy(to, lanes, static_cast<size_t>(part.count) * sizeof(T));
}
// x with `other` in the lanes past a part.
HWY_INLINE V keep(V x, V, Whole) { return x; }
HWY_INLINE V keep(V x, V other, Part part) {
  return hn::IfThenElse(hn::FirstN(f32, static_cast<size_t>(part.count)), x, other);
}

// body(at, extent) for each vector of n elements, in ascending order.
template <class Body>
HWY_INLINE void for_vectors(int64_t n, Body&& body) {
  int64_t at = 0;
  for (; at + kLanes <= n; at += kLanes) body(at, Whole{});
  if (at < n) body(at, Part{n - at});
}

// Four chains hide the latency of a multiply-add.
struct Chains {
  V of[4];

  explicit HWY_INLINE Chains(float start) {
    for (V& each : of) each = hn::Set(f32, start);
  }
  HWY_INLINE float sum() const {
    return hn::GetLane(hn::SumOfLanes(f32, hn::Add(hn::Add(of[0], of[1]), hn::Add(of[2], of[3]))));
  }
  HWY_INLINE float max() const {
    return hn::GetLane(hn::MaxOfLanes(f32, hn::Max(hn::Max(of[0], of[1]), hn::Max(of[2], of[3]))));
  }
};

// body(at, extent, chain) for each vector: number n of them goes to chain n % 4.
template <class Body>
HWY_INLINE void for_chains(int64_t n, Body&& body) {
  int64_t at = 0;
  for (; at + 4 * kLanes <= n; at += 4 * kLanes) {
#pragma GCC unroll 4
    for (int chain = 0; chain < 4; ++chain) body(at + chain * kLanes, Whole{}, chain);
  }
  int chain = 0;
  for (; at + kLanes <= n; at += kLanes) body(at, Whole{}, chain++);
  if (at < n) body(at, Part{n - at}, chain);
}

// A type as a value: f(Of<T>{}) for the T behind a runtime type.
template <class T>
struct Of {};

template <class Body>
HWY_INLINE void with_float(DType type, Body&& body) {
  if (type == DType::bf16) return body(Of<bf16>{});
  if (type == DType::f16) return body(Of<f16>{});
  body(Of<float>{});
}

// Two types: any mixture of f32 and bf16, or f16 twice.
template <class Body>
HWY_INLINE void with_floats(DType a, DType b, Body&& body) {
  if (a == DType::f16) return body(Of<f16>{}, Of<f16>{});
  if (a == DType::bf16) return b == DType::bf16 ? body(Of<bf16>{}, Of<bf16>{}) : body(Of<bf16>{}, Of<float>{});
  if (b == DType::bf16) return body(Of<float>{}, Of<bf16>{});
  body(Of<float>{}, Of<float>{});
}

// Elements of one task: enough to outweigh handing it out (about 1 us), few enough that rows pass through the second
// cache.
constexpr int64_t kElementsPerTask = 16384;

inline int64_t blocks_of(int64_t n, int64_t each) { return (n + each - 1) / each; }

// body(row) for each row, on all threads.
template <class Body>
inline void for_rows(int64_t rows, int64_t width, Body&& body) {
  const int64_t each = larger(1, kElementsPerTask / larger(1, width));
  parallel_near(blocks_of(rows, each), [&](int64_t task) {
    for (int64_t row = task * each; row < smaller(rows, (task + 1) * each); ++row) body(row);
  });
}

// body(begin, count) for pieces of a flat array, on all threads.
template <class Body>
inline void for_pieces(int64_t count, Body&& body) {
  parallel_near(blocks_of(count, kElementsPerTask), [&](int64_t task) {
    body(task * kElementsPerTask, smaller(kElementsPerTask, count - task * kElementsPerTask));
  });
}

template <class T>
HWY_INLINE T* row_of(const View& x, int64_t row) {
  return static_cast<T*>(x.data) + row * x.stride[0];
}
