// Weights and statistics of a call that has been made, rebuilt from lse.
#include <numeric>

#include "multihead/ops/attention/attention.h"
#include "multihead/ops/attention/plan.h"
#include "multihead/ops/attention/record.h"
#include "multihead/ops/run.h"

namespace mh {
namespace {

using detail::AttentionPlan;

constexpr int kMostTop = 64;

// What a call leaves behind: the weights are exp(s - lse).
struct Rebuilt {
  const Tensor& q;
  const Tensor& k;
  const Tensor& lse;
};

AttentionPlan plan_rebuild(std::string_view op, const Rebuilt& call, const AttentionOptions& options) {
  const auto& [q, k, lse] = call;
  AttentionPlan plan = detail::plan_attention(op, {q, k, Tensor{}, options});
  detail::fill_relative(plan, false);
  const Shape shape = detail::lse_shape(plan.size);
  const detail::CallShapes shapes{&q, &k};
  check(static_cast<bool>(lse), "{}: lse has no memory; expected that of the call, f32 {}; {}", op, shape, shapes);
  check(lse.dtype() == DType::f32 && lse.shape() == shape, "{}: lse is {} {}; expected that of the call, f32 {}; {}",
        op, name(lse.dtype()), lse.shape(), shape, shapes);
  return plan;
}

std::vector<Tensor> traceable(const Rebuilt& call, const AttentionOptions& options) {
  std::vector<Tensor> inputs = detail::traceable({.q = call.q, .k = call.k}, options);
  inputs.push_back(call.lse);
  return inputs;
}

// The chosen numbers, or all below `count`.
std::vector<int32_t> chosen(std::string_view op, std::string_view what, const std::vector<int32_t>& list,
                            int64_t count) {
  if (list.empty()) {
    std::vector<int32_t> all(static_cast<size_t>(count));
    std::iota(all.begin(), all.end(), 0);
    return all;
  }
  for (const int32_t n : list) {
    check(n >= 0 && n < count, "{}: {} {} is asked for; expected 0 to {}", op, what, n, count - 1);
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

class WeightsPlan {
 public:
  WeightsPlan(std::string_view op, const Rebuilt& call, const AttentionOptions& options, const WeightsChoice& choice)
      : plan_(plan_rebuild(op, call, options)),
        heads_(chosen(op, "head", choice.heads, plan_.size.H)),
        rows_(chosen(op, "row", choice.rows, plan_.size.Tq)),
        args_(common_args<kernels::AttentionWeightsArgs>(plan_, call.lse)) {
    args_.heads = detail::placed(heads_, plan_.device, plan_.held);
    args_.head_count = static_cast<int64_t>(heads_.size());
    args_.rows = detail::placed(rows_, plan_.device, plan_.held);
    args_.row_count = static_cast<int64_t>(rows_.size());
  }

  Shape shape() const { return {plan_.size.sequences, args_.head_count, args_.row_count, plan_.size.Tk}; }

  void run(const Tensor& weights) const {
    kernels::AttentionWeightsArgs args = args_;
    args.weights = weights.view();
    if (plan_.mixing.kind != kernels::Mixing::none || !kernels::kernels_of(plan_.device).attention_weights) {
      mh::run(&Table::composed_weights, {args, plan_.mixing}, weights);
    } else {
      mh::run(&Table::attention_weights, args, weights);
    }
  }

 private:
  AttentionPlan plan_;
  std::vector<int32_t> heads_, rows_;
  kernels::AttentionWeightsArgs args_;
};

}  // namespace

Tensor attention_weights(const Tensor& q, const Tensor& k, const Tensor& lse, const AttentionOptions& options,
                         const std::vector<int32_t>& heads, const std::vector<int32_t>& rows) {
  const WeightsPlan plan("attention_weights", {q, k, lse}, options, {heads, rows});

  Tensor weights = empty_on(q, plan.shape());
  plan.run(weights);
  return refuse_gradient("attention_weights", weights, traceable({q, k, lse}, options));
}

void attention_weights_into(const Tensor& weights, const AttentionCall& call, const AttentionOptions& options,
                            const WeightsChoice& choice) {
  constexpr std::string_view op = "attention_weights_into";
  const Tensor& lse = call.result.lse;
  const WeightsPlan plan(op, {call.q, call.k, lse}, options, choice);
  detail::check_rows(op, "weights", weights, plan.shape(), DType::f32);
  detail::check_apart(op, "weights", weights, {call.q, call.k, Tensor{}, options});
  check(!overlaps(weights, lse), "{}: weights share memory with lse; expected memory of their own; weights are {}", op,
        weights.shape());
  refuse_traced(op, traceable({call.q, call.k, lse}, options));
  plan.run(weights);
}

AttentionStatistics attention_statistics(const Tensor& q, const Tensor& k, const Tensor& lse,
                                         const AttentionOptions& options, int top) {
  const AttentionPlan plan = plan_rebuild("attention_statistics", {q, k, lse}, options);
  check(top >= 0 && top <= kMostTop, "attention_statistics: the top {} keys are asked for; expected 0 to {}; {}", top,
        kMostTop, detail::CallShapes{&q, &k});
  const detail::AttentionSizes& s = plan.size;
  AttentionStatistics out;
  out.entropy = empty_on(q, {s.sequences, s.H, s.Tq});
  out.distance = empty_on(q, {s.sequences, s.H, s.Tq});
  out.received = empty_on(q, {s.sequences, s.H, s.Tk});
  out.top_keys = empty_on(q, {s.sequences, s.H, s.Tq, top}, DType::i32);
  out.top_weights = empty_on(q, {s.sequences, s.H, s.Tq, top});

  auto args = common_args<kernels::AttentionStatisticsArgs>(plan, lse);
  args.entropy = out.entropy.view();
  args.distance = out.distance.view();
  args.received = out.received.view();
  if (top > 0) {
    args.top_keys = out.top_keys.view();
    args.top_weights = out.top_weights.view();
  }
  if (plan.mixing.kind != kernels::Mixing::none || !kernels::kernels_of(plan.device).attention_statistics) {
    run(&Table::composed_statistics, {args, plan.mixing}, q);
  } else {
    run(&Table::attention_statistics, args, q);
  }
  const std::vector<Tensor> inputs = traceable({q, k, lse}, options);
  for (Tensor* each : {&out.entropy, &out.top_weights, &out.received, &out.distance})
    *each = refuse_gradient("attention_statistics", *each, inputs);
  return out;
}

}  // namespace mh
