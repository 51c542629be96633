// The cross-entropy of rows of logits: a row is read for its maximum and sum, then from the cache for its exponentials.
#pragma once

#include "multihead/kernels/cpu/rows/max.inl"
#include "multihead/kernels/cpu/rows/softmax.inl"
#include "multihead/kernels/cpu/rows/vectors.inl"
#include "multihead/kernels/cpu/vector_math.inl"

// The largest element and, for smoothing, the sum of all.
template <class T>
HWY_INLINE float row_max_and_sum(const T* x, int64_t n, float& sum) {
  Chains most(kNone), sums(0);
  const V none = hn::Set(f32, kNone);
  for_chains(n, [&](int64_t at, auto extent, int chain) {
    const V each = get(x + at, extent), kept = keep(each, none, extent);
    most.of[chain] = hn::IfThenElse(hn::Gt(kept, most.of[chain]), kept, most.of[chain]);
    sums.of[chain] = hn::Add(sums.of[chain], each);
  });
  sum = sums.sum();
  return most.max();
}

// Writes what row `row` gives; exp_sum(max): Σ exp(x - max).
template <class T, class ExpSum>
HWY_INLINE void cross_entropy_row(const CrossEntropyForwardArgs& args, int64_t row, ExpSum&& exp_sum) {
  const int32_t target = args.targets[row];
  if (target == args.ignore) {
    args.lse[row] = args.loss[row] = args.nll[row] = 0;
    return;
  }
  const T* x = row_of<T>(args.x, row);
  const int64_t n = args.x.size[1];
  float sum = 0;
  const float max = finite_max(args.smoothing > 0 ? row_max_and_sum(x, n, sum) : row_max(x, n));
  const float past = logf(exp_sum(max));
  // lse - x[target] as (max - x[target]) + log Σ exp(x - max): the large parts cancel first.
  const float nll = max - widen(x[target]) + past;
  args.lse[row] = max + past;
  args.nll[row] = nll;
  args.loss[row] = args.smoothing > 0
                       ? (1 - args.smoothing) * nll + args.smoothing * (max - sum / static_cast<float>(n) + past)
                       : nll;
}

template <class X, class D>
HWY_INLINE void cross_entropy_row_backward(const CrossEntropyBackwardArgs& args, int64_t row) {
  const X* x = row_of<X>(args.x, row);
  D* dx = row_of<D>(args.dx, row);
  const int64_t n = args.x.size[1];
  const int32_t target = args.targets[row];
  if (target == args.ignore) {
    memset(static_cast<void*>(dx), 0, static_cast<size_t>(n) * sizeof(D));
    return;
  }
  const V lse = hn::Set(f32, args.lse[row]), scale = hn::Set(f32, args.scale);
  const V shared = hn::Set(f32, -args.smoothing / static_cast<float>(n) * args.scale);
  const float at_target = widen(x[target]);
  for_vectors(n, [&](int64_t at, auto extent) {
    put(hn::MulAdd(exp_past(get(x + at, extent), lse), scale, shared), dx + at, extent);
  });
  const float p = expf(at_target - args.lse[row]);
  narrow((p - (1 - args.smoothing) - args.smoothing / static_cast<float>(n)) * args.scale, dx + target);
}

void cross_entropy_backward(const CrossEntropyBackwardArgs& args, Queue&) {
  with_floats(args.x.dtype, args.dx.dtype, [&]<class X, class D>(Of<X>, Of<D>) {
    for_rows(args.x.size[0], args.x.size[1], [&](int64_t row) { cross_entropy_row_backward<X, D>(args, row); });
  });
}

// The same and dx: the exponentials wait in `room` (V) for their sum.
template <class X, class D>
HWY_INLINE void cross_entropy_row_both(const CrossEntropyForwardArgs& args, int64_t row, float* room) {
  const int64_t n = args.x.size[1];
  const int32_t target = args.targets[row];
  const X* x = row_of<X>(args.x, row);
  D* dx = row_of<D>(args.dx, row);
  float sum = 0;
  cross_entropy_row<X>(args, row, [&](float max) HWY_ATTR { return sum = row_exps(x, n, max, room); });
  if (target == args.ignore) {
    memset(static_cast<void*>(dx), 0, static_cast<size_t>(n) * sizeof(D));
    return;
  }
  const float each = args.smoothing / static_cast<float>(n);
  const V share = hn::Set(f32, 1 / sum), shared = hn::Set(f32, -each);
  for_vectors(
      n, [&](int64_t at, auto extent) { put(hn::MulAdd(get(room + at, extent), share, shared), dx + at, extent); });
  narrow(room[target] / sum - (1 - args.smoothing) - each, dx + target);
}

void cross_entropy_forward(const CrossEntropyForwardArgs& args, Queue&) {
  const int64_t n = args.x.size[1];
  if (!args.dx) {
    with_float(args.x.dtype, [&]<class T>(Of<T>) {
      for_rows(args.x.size[0], n, [&](int64_t row) {
        cross_entropy_row<T>(args, row,
                             [&](float max) HWY_ATTR { return row_exp_sum(row_of<T>(args.x, row), n, max); });
      });
    });
    return;
  }
  with_floats(args.x.dtype, args.dx.dtype, [&]<class X, class D>(Of<X>, Of<D>) {
    for_rows(args.x.size[0], n, [&](int64_t row) {
      Scratch scratch;
      cross_entropy_row_both<X, D>(args, row, scratch.take<float>(n));
    });
  });
}
