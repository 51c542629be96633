// Attention with the mean of its weights over heads: in one pass where there is a kernel for it.
#include <numeric>

#include "multihead/ops/attention/attention.h"
#include "multihead/ops/attention/plan.h"
#include "multihead/ops/attention/record.h"
#include "multihead/ops/attention/run.h"
#include "multihead/ops/rows/reduce.h"
#include "multihead/ops/run.h"

namespace mh {
namespace {

// Rows whose weights of all heads are held at a time, where the mean is taken of them: at most 4 MiB.
int64_t rows_at_once(const detail::AttentionSizes& size) {
  const int64_t row = size.sequences * size.H * size.Tk;
  return std::max<int64_t>(1, (int64_t{1} << 20) / std::max<int64_t>(1, row));
}

void mean_of_weights(const Tensor& mean, const AttentionCall& call, const AttentionOptions& options, int64_t step) {
  const Tensor q = call.q.detach(), k = call.k.detach();
  for (int64_t begin = 0; begin < mean.size(1); begin += step) {
    std::vector<int32_t> rows(static_cast<size_t>(std::min(step, mean.size(1) - begin)));
    std::iota(rows.begin(), rows.end(), static_cast<int32_t>(begin));
    const Tensor weights = attention_weights(q, k, call.result.lse, options, {}, rows);
    mean.slice(1, begin, begin + weights.size(2)).copy_from(mh::mean(weights, {.axes = {1}}));
  }
}

}  // namespace

void attention_mean_into(const Tensor& mean, const AttentionCall& call, const AttentionOptions& options) {
  constexpr std::string_view op = "attention_mean_into";
  const auto& [q, k, v, out] = call;
  check(static_cast<bool>(v), "{}: v has no memory; expected values for the keys; {}", op,
        detail::CallShapes{&q, &k, &v});
  const detail::AttentionInputs inputs{q, k, v, options};
  detail::AttentionPlan plan = detail::plan_attention(op, inputs);
  const detail::AttentionSizes& size = plan.size;
  detail::check_results(op, out, plan, inputs);
  detail::check_rows(op, "mean", mean, {size.sequences, size.Tq, size.Tk}, DType::f32);
  detail::check_apart(op, "mean", mean, inputs);
  check(!overlaps(mean, out.o) && !overlaps(mean, out.lse),
        "{}: mean shares memory with o or lse; expected memory of its own; o is {}, mean is {}", op, out.o.shape(),
        mean.shape());
  refuse_traced(op, detail::traceable(call, options));

  if (plan.mixing.kind != kernels::Mixing::none || options.dropout.p > 0 ||
      !kernels::kernels_of(plan.device).attention_mean) {
    const AttentionResult results{out.o, out.lse ? out.lse : empty_on(q, detail::lse_shape(size))};
    detail::run_forward(plan, results.o, results.lse);
    mean_of_weights(mean, {q, k, v, results}, options, rows_at_once(size));
    return;
  }
  detail::fill_relative(plan, false);
  kernels::AttentionMeanArgs args{detail::forward_args(plan), mean.view()};
  args.call.o = detail::heads_view(size, out.o);
  if (out.lse) args.call.lse = detail::lse_view(size, out.lse);
  run(&Table::attention_mean, args, mean);
}

}  // namespace mh
