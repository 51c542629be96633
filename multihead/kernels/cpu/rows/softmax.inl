// Softmax over rows: the largest element, the sum of exponentials, then what is made of them.
#pragma once

#include "multihead/kernels/cpu/rows/max.inl"
#include "multihead/kernels/cpu/rows/vectors.inl"
#include "multihead/kernels/cpu/vector_math.inl"

template <class T>
HWY_INLINE float row_exp_sum(const T* x, int64_t n, float max) {
  Chains sums(0);
  const V most = hn::Set(f32, max);
  for_chains(n, [&](int64_t at, auto extent, int chain) {
    sums.of[chain] = hn::Add(sums.of[chain], keep(exp_past(get(x + at, extent), most), hn::Zero(f32), extent));
  });
  return sums.sum();
}

template <class T>
HWY_INLINE float row_lse(const T* x, int64_t n) {
  const float max = finite_max(row_max(x, n)), sum = row_exp_sum(x, n, max);
  return max + logf(sum);
}

void log_sum_exp(const LogSumExpArgs& args, Queue&) {
  with_float(args.x.dtype, [&]<class T>(Of<T>) {
    for_rows(args.x.size[0], args.x.size[1],
             [&](int64_t row) { args.lse[row] = row_lse(row_of<T>(args.x, row), args.x.size[1]); });
  });
}

// Σ exp(x - max), whose terms stay in `room` (n elements).
template <class T>
HWY_INLINE float row_exps(const T* x, int64_t n, float max, float* room) {
  Chains sums(0);
  const V most = hn::Set(f32, max);
  for_chains(n, [&](int64_t at, auto extent, int chain) {
    const V e = keep(exp_past(get(x + at, extent), most), hn::Zero(f32), extent);
    sums.of[chain] = hn::Add(sums.of[chain], e);
    put(e, room + at, extent);
  });
  return sums.sum();
}

// The exponentials wait in `room` (n elements) for their sum: a narrow y would round them twice.
template <class T>
HWY_INLINE void softmax_row(const T* x, T* y, int64_t n, float* room) {
  const V share = hn::Set(f32, 1.0f / row_exps(x, n, row_max(x, n), room));
  for_vectors(n, [&](int64_t at, auto extent) { put(hn::Mul(get(room + at, extent), share), y + at, extent); });
}

template <class T>
HWY_INLINE void log_softmax_row(const T* x, T* y, int64_t n) {
  const float max = row_max(x, n);
  const V most = hn::Set(f32, max), past = hn::Set(f32, logf(row_exp_sum(x, n, max)));
  for_vectors(n,
              [&](int64_t at, auto extent) { put(hn::Sub(hn::Sub(get(x + at, extent), most), past), y + at, extent); });
}

void softmax_forward(const SoftmaxForwardArgs& args, Queue&) {
  const int64_t n = args.x.size[1];
  with_float(args.x.dtype, [&]<class T>(Of<T>) {
    for_rows(args.x.size[0], n, [&](int64_t row) {
      const T* x = row_of<T>(args.x, row);
      T* y = row_of<T>(args.y, row);
      if (args.log) return log_softmax_row(x, y, n);
      if constexpr (sizeof(T) == sizeof(float)) {
        softmax_row(x, y, n, y);
      } else {
        Scratch scratch;
        softmax_row(x, y, n, scratch.take<float>(n));
      }
    });
  });
}

template <class T>
HWY_INLINE void softmax_row_backward(const T* y, const T* dy, T* dx, int64_t n, bool log) {
  Chains sums(0);
  for_chains(n, [&](int64_t at, auto extent, int chain) {
    const V d = get(dy + at, extent);
    sums.of[chain] = log ? hn::Add(d, sums.of[chain]) : hn::MulAdd(d, get(y + at, extent), sums.of[chain]);
  });
  const V sum = hn::Set(f32, sums.sum()), unit = hn::Set(f32, kLog2E);
  for_vectors(n, [&](int64_t at, auto extent) {
    const V d = get(dy + at, extent), p = get(y + at, extent);
    put(log ? hn::NegMulAdd(exp2(hn::Mul(p, unit)), sum, d) : hn::Mul(p, hn::Sub(d, sum)), dx + at, extent);
  });
}

void softmax_backward(const SoftmaxBackwardArgs& args, Queue&) {
  const int64_t n = args.y.size[1];
  with_float(args.y.dtype, [&]<class T>(Of<T>) {
    for_rows(args.y.size[0], n, [&](int64_t row) {
      softmax_row_backward(row_of<T>(args.y, row), row_of<T>(args.dy, row), row_of<T>(args.dx, row), n, args.log);
    });
  });
}
