// The same plan as on the CPU, handed to the GPU's kernels.
#include "multihead/ops/attention/on_gpu.h"

#include "multihead/kernels/relative_bias.h"
#include "multihead/ops/attention/plan.h"
#include "multihead/ops/run.h"

namespace mh {
namespace {

using detail::AttentionPlan;

AttentionPlan plan_on_gpu(std::string_view op, const AttentionCall& call, const AttentionOptions& options) {
  const detail::CallShapes shapes{&call.q, &call.k, &call.v};
  check(static_cast<bool>(call.v), "{}: v has no memory; expected values for the keys; {}", op, shapes);
  AttentionPlan plan = detail::plan_attention(op, {call.q, call.k, call.v, options});
  if (plan.mixing.kind != kernels::Mixing::none)
    fail(ErrorKind::unsupported, "{}: score mixing on a GPU; expected tensors of the CPU for it; {}", op, shapes);
  constexpr int64_t most = int64_t{1} << 30;  // positions of its kernels have 32 bits
  for (const kernels::Sequence& sequence : plan.sequences) {
    if (sequence.position > -most && sequence.position < most && sequence.q_len < most && sequence.k_len < most)
      continue;
    fail(ErrorKind::unsupported, "{}: queries from position {} over {} keys; expected less than 2^30 on a GPU; {}", op,
         sequence.position, sequence.k_len, shapes);
  }
  detail::fill_relative(plan, false);
  return plan;
}

template <class Args>
Args args_of(const AttentionPlan& plan, const AttentionResult& result) {
  Args args;
  args.q = plan.q;
  args.kv = plan.kv;
  args.scores = plan.scores;
  args.sequences = plan.sequence_list();
  args.o = detail::heads_view(plan.size, result.o);
  if (result.lse) args.lse = detail::lse_view(plan.size, result.lse);
  return args;
}

bool is_empty(const AttentionPlan& plan) { return plan.size.batch == 0 || plan.size.rows == 0; }

}  // namespace

void attention_into_on_gpu(const AttentionCall& call, const AttentionOptions& options, const GpuQueue& queue) {
  constexpr std::string_view op = "attention_into";
  const AttentionPlan plan = plan_on_gpu(op, call, options);
  detail::check_results(op, call.result, plan, {call.q, call.k, call.v, options});
  if (is_empty(plan)) return;
  kernels::gpu::attention_forward(args_of<kernels::AttentionForwardArgs>(plan, call.result), queue);
}

void attention_backward_into_on_gpu(const AttentionGradients& out, const AttentionCall& call,
                                    const OutputGradients& gradients, const AttentionOptions& options,
                                    const GpuQueue& queue) {
  constexpr std::string_view op = "attention_backward";
  const AttentionPlan plan = plan_on_gpu(op, call, options);
  const detail::AttentionSizes& size = plan.size;
  detail::check_rows(op, "o", call.result.o, detail::output_shape(size), call.q.dtype());
  detail::check_output(op, "lse", call.result.lse, detail::lse_shape(size), DType::f32);
  detail::check_rows(op, "d_o", gradients.d_o, detail::output_shape(size), call.q.dtype());
  if (gradients.d_lse) detail::check_output(op, "d_lse", gradients.d_lse, detail::lse_shape(size), DType::f32);
  if (is_empty(plan)) return;

  auto args = args_of<kernels::AttentionBackwardArgs>(plan, call.result);
  args.d_o = detail::heads_view(size, gradients.d_o);
  if (gradients.d_lse) args.d_lse = detail::lse_view(size, gradients.d_lse);
  const auto rows = [&](View& view, std::string_view what, const Tensor& t, const Tensor& of) {
    if (!t) return;
    detail::check_rows(op, what, t, of.shape(), of.dtype());
    view = detail::heads_view(size, t);
  };
  rows(args.dq, "dq", out.dq, call.q);
  rows(args.dk, "dk", out.dk, call.k);
  rows(args.dv, "dv", out.dv, call.v);
  const auto per_head = [&](float*& to, std::string_view what, const Tensor& t, bool used) {
    if (!t) return;
    check(used, "{}: {} is asked for, but the call has nothing of the kind", op, what);
    detail::check_output(op, what, t, {size.H}, DType::f32);
    to = t.data<float>();
  };
  per_head(args.dsink, "dsink", out.dsink, plan.scores.sink != nullptr);
  per_head(args.dscale, "dtau", out.dtau, plan.scores.similarity == kernels::Similarity::cosine);
  const auto bias = [&](int n) { return n >= 0 && !out.dbias.empty() ? out.dbias[static_cast<size_t>(n)] : Tensor{}; };
  if (const Tensor dense = bias(plan.dense_bias)) args.dbias = detail::pair_view(op, "dbias", dense, size);
  const Tensor far = bias(plan.relative_bias);
  const Tensor by_distance = far ? zeros({plan.relative_count()}) : Tensor{};
  if (far) args.drelative = by_distance.data<float>();

  kernels::gpu::attention_backward(args, queue);
  if (!far) return;
  const bool alibi = far.rank() == 1;
  run(&Table::relative_bias_backward,
      {.drelative = args.drelative,
       .dslopes = alibi ? far.view() : View{},
       .dtable = alibi ? View{} : far.view(),
       .buckets = plan.buckets,
       .distances = plan.distances},
      by_distance);
}

GpuFacts gpu_facts() { return kernels::gpu::facts(); }

}  // namespace mh
