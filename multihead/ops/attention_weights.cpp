// Weights and statistics of a call that has been made, rebuilt from lse.
#include <numeric>

#include "multihead/kernels/cpu/dispatch.h"
#include "multihead/ops/attention.h"
#include "multihead/ops/attention_plan.h"

namespace mh {
namespace {

using detail::AttentionPlan;

constexpr int kMostTop = 64;

AttentionPlan plan_rebuild(std::string_view op, const Tensor& q, const Tensor& k, const Tensor& lse, const AttentionOptions& options) {
  AttentionPlan plan = detail::plan_attention(op, {q, k, Tensor{}, options});
  const Shape shape = detail::lse_shape(plan.size);
  const detail::CallShapes shapes{&q, &k};
  check(static_cast<bool>(lse), "{}: lse has no memory; expected that of the call, f32 {}; {}", op, shape, shapes);
  check(lse.dtype() == DType::f32 && lse.shape() == shape, "{}: lse is {} {}; expected that of the call, f32 {}; {}", op,
        name(lse.dtype()), lse.shape(), shape, shapes);
  return plan;
}

// The chosen numbers, or all below `count`.
std::vector<int32_t> chosen(std::string_view what, const std::vector<int32_t>& list, int64_t count) {
  if (list.empty()) {
    std::vector<int32_t> all(static_cast<size_t>(count));
    std::iota(all.begin(), all.end(), 0);
    return all;
  }
  for (const int32_t n : list) {
    check(n >= 0 && n < count, "attention_weights: {} {} is asked for; expected 0 to {}", what, n, count - 1);
  }
  return list;
}

template <class Args>
Args common_args(const AttentionPlan& plan, const Tensor& lse) {
  Args args;
  args.q = plan.q;
  args.kv = plan.kv;
  args.scores = plan.scores;
  args.sequences = plan.sequence_list();
  args.lse = detail::lse_view(plan.size, lse);
  return args;
}

}  // namespace

Tensor attention_weights(const Tensor& q, const Tensor& k, const Tensor& lse, const AttentionOptions& options,
                         const std::vector<int32_t>& heads, const std::vector<int32_t>& rows) {
  const AttentionPlan plan = plan_rebuild("attention_weights", q, k, lse, options);
  const std::vector<int32_t> head_list = chosen("head", heads, plan.size.H), row_list = chosen("row", rows, plan.size.Tq);
  auto args = common_args<kernels::AttentionWeightsArgs>(plan, lse);
  args.heads = head_list.data();
  args.head_count = static_cast<int64_t>(head_list.size());
  args.rows = row_list.data();
  args.row_count = static_cast<int64_t>(row_list.size());

  Tensor weights = empty({plan.size.sequences, args.head_count, args.row_count, plan.size.Tk});
  args.weights = weights.view();
  const kernels::Table& table = kernels::cpu();
  if (plan.mixing.kind != detail::Mixing::none || !table.attention_weights) {
    detail::composed_weights(args, plan.mixing);
  } else {
    table.attention_weights(args);
  }
  return weights;
}

AttentionStatistics attention_statistics(const Tensor& q, const Tensor& k, const Tensor& lse, const AttentionOptions& options, int top) {
  const AttentionPlan plan = plan_rebuild("attention_statistics", q, k, lse, options);
  check(top >= 0 && top <= kMostTop, "attention_statistics: the top {} keys are asked for; expected 0 to {}; {}", top, kMostTop,
        detail::CallShapes{&q, &k});
  const detail::AttentionSizes& s = plan.size;
  AttentionStatistics out;
  out.entropy = empty({s.sequences, s.H, s.Tq});
  out.distance = empty({s.sequences, s.H, s.Tq});
  out.received = empty({s.sequences, s.H, s.Tk});
  out.top_keys = empty({s.sequences, s.H, s.Tq, top}, DType::i32);
  out.top_weights = empty({s.sequences, s.H, s.Tq, top});

  auto args = common_args<kernels::AttentionStatisticsArgs>(plan, lse);
  args.entropy = out.entropy.view();
  args.distance = out.distance.view();
  args.received = out.received.view();
  if (top > 0) {
    args.top_keys = out.top_keys.view();
    args.top_weights = out.top_weights.view();
  }
  const kernels::Table& table = kernels::cpu();
  if (plan.mixing.kind != detail::Mixing::none || !table.attention_statistics) {
    detail::composed_statistics(args, plan.mixing);
  } else {
    table.attention_statistics(args);
  }
  return out;
}

}  // namespace mh
