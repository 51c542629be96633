// The largest elements of one row, and their log-probabilities.
#pragma once

#include "multihead/kernels/cpu/rows/max.inl"
#include "multihead/kernels/cpu/rows/vectors.inl"
#include "multihead/kernels/cpu/vector_math.inl"

struct TopList {
  int64_t k, held = 0;
  float values[kMostTop];
  int32_t columns[kMostTop];

  // The value that another must pass.
  float bar() const { return held < k ? kNone : values[k - 1]; }

  // Columns come in ascending order and only a larger value displaces one: equal ones stay by smaller column.
  void offer(float value, int32_t column) {
    if (held == k && !(value > values[k - 1])) return;
    int64_t at = held < k ? held++ : k - 1;
    for (; at > 0 && values[at - 1] < value; --at) values[at] = values[at - 1], columns[at] = columns[at - 1];
    values[at] = value;
    columns[at] = column;
  }
};

// Offers the elements of a span, ascending. The bar is raised as places fill, so that few vectors hold one that passes
// it.
template <class T>
HWY_INLINE void offer_span(const T* x, int64_t begin, int64_t count, TopList& list) {
  for_vectors(count, [&](int64_t at, auto extent) {
    // Lanes past the end never pass, and neither does NaN.
    const V each = keep(get(x + begin + at, extent), hn::Set(f32, __builtin_nanf("")), extent);
    const V bar = hn::Set(f32, list.bar());
    const M passes = list.held < list.k ? hn::Not(hn::IsNaN(each)) : hn::Gt(each, bar);
    if (HWY_LIKELY(hn::AllFalse(f32, passes))) return;
    HWY_ALIGN float lanes[kLanes];
    hn::Store(each, f32, lanes);
    uint8_t bits[8] = {};
    hn::StoreMaskBits(f32, passes, bits);
    for (int lane = 0; lane < kLanes; ++lane)
      if (bits[lane / 8] >> (lane % 8) & 1) list.offer(lanes[lane], static_cast<int32_t>(begin + at + lane));
  });
}

// Elements whose exponentials are summed before they are offered: they are in the first cache then.
constexpr int64_t kTopSpan = 1024;

template <class T>
HWY_INLINE void top_of_row(const T* x, int64_t n, TopKArgs const& args, int64_t row) {
  TopList list;
  list.k = args.k;
  const float max = finite_max(row_max(x, n));
  const V most = hn::Set(f32, max);
  Chains sums(0);
  for (int64_t begin = 0; begin < n; begin += kTopSpan) {
    const int64_t count = smaller(kTopSpan, n - begin);
    for_chains(count, [&](int64_t at, auto extent, int chain) {
      sums.of[chain] =
          hn::Add(sums.of[chain], keep(exp_past(get(x + begin + at, extent), most), hn::Zero(f32), extent));
    });
    offer_span(x, begin, count, list);
  }
  const float past = logf(sums.sum());
  for (int64_t at = 0; at < args.k; ++at) {
    const bool held = at < list.held;
    args.values[row * args.k + at] = held ? list.values[at] - max - past : __builtin_nanf("");
    args.indices[row * args.k + at] = held ? list.columns[at] : -1;
  }
}
