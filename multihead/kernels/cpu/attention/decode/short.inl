// The short way of decode: rows of f32 with nothing between q · k and the softmax, over few keys. The arithmetic of the
// long way in its order, so the same bits, without its scratch, marks and prefetches (Zen 4, one query of width 64 over
// 10 keys: 285 ns a head the long way).
#pragma once

#include "multihead/kernels/cpu/attention/decode/chunk.inl"
#include "multihead/kernels/cpu/attention/decode/rows.inl"
#include "multihead/kernels/cpu/attention/decode/scores.inl"
#include "multihead/kernels/cpu/vector_math.inl"

namespace decode {

// Up to here a call is bound by what surrounds the arithmetic.
constexpr int64_t kShortKeys = 128;

inline bool is_plain(const AttentionForwardArgs& a) {
  const Scores& s = a.scores;
  const bool floats = a.q.dtype == DType::f32 && a.kv.k.dtype == DType::f32 && a.kv.v.dtype == DType::f32;
  const bool whole = a.q.size[3] % kLanes == 0 && a.o.size[3] % kLanes == 0;
  const bool biased = s.relative || s.slopes || s.bias;
  return floats && whole && s.cap == 0 && !biased && !s.sink && !s.q_documents && s.dense_count == 0;
}

// Scores to weights exp(s - max), in place; false where a score is not finite.
HWY_INLINE bool short_softmax(float scale, int64_t keys, float* s, float* max, float* sum) {
  const V factor = hn::Set(f32, scale);
  V top = hn::Set(f32, kNone);
  bool finite = true;
  for (int64_t n = 0; n < keys; n += kLanes) {
    const auto held = hn::FirstN(f32, static_cast<size_t>(smaller(kLanes, keys - n)));
    const V x = hn::IfThenElse(held, hn::Mul(hn::Load(f32, s + n), factor), hn::Set(f32, kNone));
    finite &= hn::AllTrue(f32, hn::Or(hn::Not(held), hn::IsFinite(x)));
    top = hn::Max(top, x);
    hn::Store(x, f32, s + n);
  }
  if (!finite) return false;
  *max = hn::GetLane(hn::MaxOfLanes(f32, top));
  const V base = hn::Set(f32, *max), log2e = hn::Set(f32, kLog2E);
  V total = hn::Zero(f32);
  for (int64_t n = 0; n < keys; n += kLanes) {
    const V p = exp2(hn::Mul(hn::Sub(hn::Load(f32, s + n), base), log2e));
    hn::Store(p, f32, s + n);
    total = hn::Add(total, p);
  }
  *sum = hn::GetLane(hn::SumOfLanes(f32, total));
  return true;
}

HWY_INLINE void copy_row(const float* from, int64_t width, float* to) {
  for (int64_t d = 0; d < width; d += kLanes) hn::Store(hn::LoadU(f32, from + d), f32, to + d);
}

// Reads a byte of every line of a sequence's keys and values where all heads of a key lie together. A batch of
// translations has more of them than the third cache holds: in the order of memory the hardware brings them, head by
// head a core waits (Zen 4, ten keys out of DRAM: 240 against 550 ns a head; with prefetch instructions 440).
inline void touch_sequence(const DecodePlan& plan, const AttentionForwardArgs& a, int64_t b) {
  const Sequence& sequence = a.sequences.data[b];
  const auto together = [](const View& x) { return x.stride[1] >= 0 && x.stride[1] < x.stride[2]; };
  if (!plan.plain || a.kv.pages || sequence.k_len > kShortKeys || !together(a.kv.k) || !together(a.kv.v)) return;
  const auto touch = [&](const View& x, int64_t j) {
    const int64_t at = sequence.batch * x.stride[0] + (sequence.k_begin + j) * x.stride[2];
    const volatile float* row = static_cast<const float*>(x.data) + at;
    const int64_t end = (x.size[1] - 1) * x.stride[1] + x.size[3];
    for (int64_t n = 0; n < end; n += 16) static_cast<void>(row[n]);
  };
  for (int64_t j = 0; j < sequence.k_len; ++j) {
    touch(a.kv.k, j);
    touch(a.kv.v, j);
  }
}

// Whether the unit could go the short way; else nothing was written.
inline bool short_unit(const DecodePlan& plan, const DecodeUnit& u) {
  const AttentionForwardArgs& a = *u.args;
  const int64_t keys = u.sequence->k_len, batch = u.sequence->batch, first = u.sequence->q_begin;
  if (!plan.plain || keys == 0 || keys > kShortKeys) return false;
  for (int64_t r = 0; r < u.rows; ++r) {
    if (u.row[r].keys.begin != 0 || u.row[r].keys.end != keys) return false;
  }
  HWY_ALIGN float q[kDecodeMostRows * kDecodeMostWidth], o[kDecodeMostRows * kDecodeMostWidth];
  HWY_ALIGN float s[kDecodeMostRows * kStrip];
  float max[kDecodeMostRows], sum[kDecodeMostRows];
  const int64_t k_width = plan.k.width, v_width = plan.v.width;
  for (int64_t r = 0; r < u.rows; ++r)
    copy_row(static_cast<const float*>(a.q.data) + offset_of(a.q, batch, u.row[r].head, first + u.row[r].query, 0),
             k_width, q + r * k_width);
  visit_runs(u, a.kv.k, 0, keys, [&](const Run& run, int64_t n) { plan.dot(plan.k, run, q, u.rows, nullptr, s + n); });
  for (int64_t r = 0; r < u.rows; ++r) {
    if (!short_softmax(a.scores.scale[u.row[r].head], keys, s + r * kStrip, max + r, sum + r)) return false;
  }
  for (int64_t d = 0; d < u.rows * v_width; d += kLanes) hn::Store(hn::Zero(f32), f32, o + d);
  visit_runs(u, a.kv.v, 0, keys, [&](const Run& run, int64_t n) { plan.add(plan.v, run, s + n, u.rows, o); });
  for (int64_t r = 0; r < u.rows; ++r) {
    const int64_t i = first + u.row[r].query, h = u.row[r].head;
    float* y = static_cast<float*>(a.o.data) + offset_of(a.o, batch, h, i, 0);
    for (int64_t d = 0; d < v_width; d += kLanes)
      hn::StoreU(hn::Div(hn::Load(f32, o + r * v_width + d), hn::Set(f32, sum[r])), f32, y + d);
    if (a.lse) static_cast<float*>(a.lse.data)[offset_of(a.lse, batch, h, i, 0)] = max[r] + logf(sum[r]);
  }
  return true;
}

}  // namespace decode
