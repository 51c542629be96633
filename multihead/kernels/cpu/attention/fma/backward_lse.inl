// A large lse to more digits than f32 holds: backward's own scores summed anew.
#pragma once

#include "multihead/kernels/cpu/attention/fma/backward.inl"
#include "multihead/kernels/cpu/attention/fma/block.inl"
#include "multihead/kernels/cpu/attention/fma/forward.inl"
#include "multihead/kernels/cpu/attention/fma/rows.inl"
#include "multihead/kernels/cpu/vector_math.inl"

// f32 holds lse to 2^-24 of its size, and p = exp(s - lse) errs by as much in relation: past 64 by more than 2^-18.
// Rows below that are left as they came; the others cost the pass over q · k once more.
constexpr float kLargeLse = 64;
inline bool is_large(float lse) { return __builtin_fabsf(lse) > kLargeLse && __builtin_fabsf(lse) < __builtin_inff(); }

// lse in units of log 2 from a row's reference maximum and sum, the sink included.
inline double lse_units(float top, float sum, const float* sink) {
  const double own = static_cast<double>(top);
  if (!sink) return own + static_cast<double>(log2f(sum));
  const double logit = static_cast<double>(*sink) * kPerUnit, raised = logit > own ? logit : own;
  const float share = sum * exp2f(static_cast<float>(own - raised)) + exp2f(static_cast<float>(logit - raised));
  return raised + static_cast<double>(log2f(share));
}

// The large ones of rows [first, first + kMaxQueries) of a head. An lse that is not that of these keys alone stays as
// it is: a caller may have merged it with others.
inline void refine_block(const BackwardPlan& plan, int64_t n, int64_t head, int64_t first) {
  const AttentionBackwardArgs& a = plan.a;
  const Sequence& s = a.sequences.data[n];
  AttentionForwardArgs keys_alone{};
  keys_alone.kv = a.kv;
  keys_alone.kv.v.size[3] = 0;
  keys_alone.scores = a.scores;
  keys_alone.sequences = a.sequences;
  Sizes sizes = plan.sizes;
  sizes.value_width = 0;

  Scratch scratch;
  const ForwardRoom room = take_forward_room(scratch, sizes, false);
  ForwardState state;
  state.q.sequence = n;
  state.q.head = head;
  state.q.first = first;
  state.q.count = static_cast<int>(smaller(kMaxQueries, s.q_len - first));
  state.q.vectors = (state.q.count + kLanes - 1) / kLanes;
  state.q.columns = take<float>(scratch, sizes.key_width * state.q.width());
  state.o = nullptr;
  for (int l = 0; l < static_cast<int>(state.q.width()); ++l) state.top[l] = kNone, state.sum[l] = 0;
  load_queries(a.q, a.scores, s, state.q, room.rows, room.zeros);
  gather(keys_alone, sizes, &state, 1, {0, INT64_MAX}, room);

  for (int r = 0; r < state.q.count; ++r) {
    if (!is_large(row_value(a.lse, s, head, first + r))) continue;
    const int64_t row = plan.row(n, head) + first + r;
    const double given = static_cast<double>(plan.lse[row]) + static_cast<double>(plan.lse_rest[row]);
    const double own = lse_units(state.top[r], state.sum[r], a.scores.sink ? a.scores.sink + head : nullptr);
    if (__builtin_fabs(own - given) <= 0x1p-22 * __builtin_fabs(given)) set_lse(plan, row, own);
  }
}

inline void refine_lse(const BackwardPlan& plan, int64_t n, int64_t head) {
  const Sequence& s = plan.a.sequences.data[n];
  for (int64_t first = 0; first < s.q_len; first += kMaxQueries) {
    bool large = false;
    for (int64_t i = first; i < smaller(s.q_len, first + kMaxQueries); ++i)
      large |= is_large(row_value(plan.a.lse, s, head, i));
    if (large) refine_block(plan, n, head, first);
  }
}
