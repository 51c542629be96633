// Attention over a cache: check, allocate, run.
#include "multihead/ops/attention/kv_cache.h"
#include "multihead/ops/attention/plan.h"
#include "multihead/ops/attention/record.h"
#include "multihead/ops/attention/run.h"
#include "multihead/ops/run.h"

namespace mh {

AttentionResult attention(const Tensor& q, const KVCache& cache, const AttentionOptions& options) {
  detail::AttentionPlan plan = detail::plan_attention("attention", q, cache, options);

  AttentionResult out{empty_on(q, detail::output_shape(plan.size), q.dtype()),
                      empty_on(q, detail::lse_shape(plan.size))};
  detail::run_forward(plan, out.o, out.lse);

  const std::vector<Tensor> inputs = detail::traceable({.q = q}, options);
  return {refuse_gradient("attention over a cache", out.o, inputs),
          refuse_gradient("attention over a cache", out.lse, inputs)};
}

}  // namespace mh
