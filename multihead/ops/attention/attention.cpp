// The forward pass: check, allocate, run.
#include "multihead/ops/attention/attention.h"

#include "multihead/ops/attention/plan.h"
#include "multihead/ops/attention/record.h"
#include "multihead/ops/attention/run.h"
#include "multihead/ops/run.h"

namespace mh {

AttentionResult attention(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionOptions& options) {
  check(static_cast<bool>(v), "attention: v has no memory; expected values for the keys; {}",
        detail::CallShapes{&q, &k, &v});
  detail::AttentionPlan plan = detail::plan_attention("attention", {q, k, v, options});

  AttentionResult out{empty_on(q, detail::output_shape(plan.size), q.dtype()),
                      empty_on(q, detail::lse_shape(plan.size))};
  detail::run_forward(plan, out.o, out.lse);

  const AttentionCall call{q, k, v, out};
  return recording(detail::traceable(call, options)) ? detail::record_attention(call, options) : out;
}

void attention_into(const AttentionResult& out, const Tensor& q, const Tensor& k, const Tensor& v,
                    const AttentionOptions& options) {
  constexpr std::string_view op = "attention_into";
  check(static_cast<bool>(v), "{}: v has no memory; expected values for the keys; {}", op,
        detail::CallShapes{&q, &k, &v});
  const detail::AttentionInputs inputs{q, k, v, options};
  detail::AttentionPlan plan = detail::plan_attention(op, inputs);
  detail::check_results(op, out, plan, inputs);
  refuse_traced(op, detail::traceable({q, k, v, {}}, options));
  detail::run_forward(plan, out.o, out.lse);
}

}  // namespace mh
