// The backward pass: check, allocate, run; and the way from distances back to slopes and tables.
#include <array>

#include "multihead/base/out_of_memory.h"
#include "multihead/ops/attention/attention.h"
#include "multihead/ops/attention/plan.h"
#include "multihead/ops/attention/record.h"
#include "multihead/ops/attention/run.h"
#include "multihead/ops/run.h"

namespace mh {
namespace {

using detail::AttentionPlan;
constexpr std::string_view kOp = "attention_backward";

Shape bias_shape(const Bias& bias) {
  if (const auto* dense = std::get_if<DenseBias>(&bias)) return dense->values.shape();
  if (const auto* alibi = std::get_if<AlibiBias>(&bias)) return alibi->slopes.shape();
  return std::get<T5Bias>(bias).table.shape();
}

Shape mix_shape(const AttentionPlan& plan) { return {plan.mixing.matrix.size[0], plan.mixing.matrix.size[1]}; }

AttentionPlan plan_backward(const AttentionCall& call, const OutputGradients& gradients,
                            const AttentionOptions& options) {
  const detail::CallShapes shapes{&call.q, &call.k, &call.v};
  check(static_cast<bool>(call.v), "{}: v has no memory; expected values for the keys; {}", kOp, shapes);
  AttentionPlan plan = detail::plan_attention(kOp, {call.q, call.k, call.v, options});
  detail::fill_relative(plan, false);
  const auto like = [&](std::string_view what, const Tensor& t, const Shape& shape, DType dtype) {
    check(static_cast<bool>(t), "{}: {} has no memory; expected {} {}; {}", kOp, what, name(dtype), shape, shapes);
    check(t.dtype() == dtype && t.shape() == shape, "{}: {} is {} {}; expected {} {}; {}", kOp, what, name(t.dtype()),
          t.shape(), name(dtype), shape, shapes);
  };
  const auto rows_like = [&](std::string_view what, const Tensor& t) {
    like(what, t, detail::output_shape(plan.size), call.q.dtype());
    check(t.size(-1) <= 1 || t.stride(-1) == 1, "{}: {} has a last stride of {}; expected 1; {}", kOp, what,
          t.stride(-1), shapes);
  };
  rows_like("o", call.result.o);
  rows_like("d_o", gradients.d_o);
  like("lse", call.result.lse, detail::lse_shape(plan.size), DType::f32);
  if (gradients.d_lse) like("d_lse", gradients.d_lse, detail::lse_shape(plan.size), DType::f32);
  detail::check_devices(kOp, {&call.q, &call.result.o, &call.result.lse, &gradients.d_o, &gradients.d_lse});
  return plan;
}

// Every output that is asked for, in a fixed order.
template <class F>
void for_each_output(const AttentionGradients& out, F&& f) {
  f("dq", out.dq);
  f("dk", out.dk);
  f("dv", out.dv);
  for (const Tensor& dbias : out.dbias) f("dbias", dbias);
  f("dsink", out.dsink);
  f("dtau", out.dtau);
  f("dmix", out.dmix);
}

void check_outputs(const AttentionPlan& plan, const AttentionGradients& out, const AttentionCall& call,
                   const OutputGradients& gradients, const AttentionOptions& options) {
  const auto rows = [&](std::string_view what, const Tensor& t, const Tensor& of) {
    if (t) detail::check_rows(kOp, what, t, of.shape(), of.dtype());
  };
  rows("dq", out.dq, call.q);
  rows("dk", out.dk, call.k);
  rows("dv", out.dv, call.v);
  check(out.dbias.empty() || out.dbias.size() == options.bias.size(),
        "{}: {} gradients for {} biases; expected one each, or none", kOp, out.dbias.size(), options.bias.size());
  for (size_t n = 0; n < out.dbias.size(); ++n) {
    if (out.dbias[n]) detail::check_rows(kOp, "dbias", out.dbias[n], bias_shape(options.bias[n]), DType::f32);
  }
  const auto where = [&](std::string_view what, const Tensor& t, bool used, const Shape& shape) {
    check(!t || used, "{}: {} is asked for, but the call has nothing of the kind", kOp, what);
    if (t) detail::check_rows(kOp, what, t, shape, DType::f32);
  };
  where("dsink", out.dsink, plan.scores.sink != nullptr, {plan.size.H});
  where("dtau", out.dtau, plan.scores.similarity == kernels::Similarity::cosine, {plan.size.H});
  where("dmix", out.dmix, plan.mixing.kind != kernels::Mixing::none, mix_shape(plan));

  const std::array<std::pair<std::string_view, const Tensor*>, 4> also{
      {{"o", &call.result.o}, {"lse", &call.result.lse}, {"d_o", &gradients.d_o}, {"d_lse", &gradients.d_lse}}};
  std::vector<const Tensor*> earlier;
  for_each_output(out, [&](std::string_view what, const Tensor& t) {
    if (!t) return;
    detail::check_apart(kOp, what, t, {call.q, call.k, call.v, options});
    for (const auto& [label, other] : also) {
      check(!*other || !overlaps(t, *other), "{}: {} shares memory with {}; expected memory of its own; {} is {}", kOp,
            what, label, what, t.shape());
    }
    for (const Tensor* other : earlier) {
      check(!overlaps(t, *other), "{}: {} shares memory with another gradient; expected memory of its own; {} is {}",
            kOp, what, what, t.shape());
    }
    earlier.push_back(&t);
  });
}

std::vector<Tensor> traceable(const AttentionCall& call, const OutputGradients& gradients,
                              const AttentionOptions& options) {
  std::vector<Tensor> inputs = detail::traceable(call, options);
  inputs.insert(inputs.end(), {call.result.o, call.result.lse, gradients.d_o, gradients.d_lse});
  return inputs;
}

// Kernels write the keys of each sequence up to its length; those past it are ours.
void clear_rest(const AttentionPlan& plan, const Tensor& t) {
  if (!t) return;
  const size_t count = plan.sequences.size();
  for (size_t b = 0; b < count; ++b) {
    const kernels::Sequence& sequence = plan.sequences[b];
    const int64_t begin = sequence.k_begin + sequence.k_len;
    const int64_t end = plan.size.packed && b + 1 < count ? plan.sequences[b + 1].k_begin : plan.size.keys;
    if (begin == end) continue;
    const Tensor rest = plan.size.packed ? t.slice(0, begin, end) : t.select(0, sequence.batch).slice(1, begin, end);
    if (rest.count() > 0) rest.copy_from(zeros_on(t, {1, 1, 1}, t.dtype()).broadcast_to(rest.shape()));
  }
}

void run_backward(const AttentionPlan& plan, const AttentionGradients& out, const AttentionCall& call,
                  const OutputGradients& gradients) {
  const detail::AttentionSizes& size = plan.size;
  const auto rows = [&](const Tensor& t) { return t ? detail::heads_view(size, t) : View{}; };
  kernels::AttentionBackwardArgs args;
  args.q = plan.q;
  args.kv = plan.kv;
  args.scores = plan.scores;
  args.sequences = plan.sequence_list();
  args.o = rows(call.result.o);
  const Tensor lse = detail::backward_lse(plan, call.result.lse);
  args.lse = detail::lse_view(size, lse);
  args.d_o = rows(gradients.d_o);
  if (gradients.d_lse) args.d_lse = detail::lse_view(size, gradients.d_lse);
  args.dq = rows(out.dq);
  args.dk = rows(out.dk);
  args.dv = rows(out.dv);
  if (out.dsink) args.dsink = out.dsink.view().as<float>();
  if (out.dtau) args.dscale = out.dtau.view().as<float>();
  const bool dense = plan.dense_bias >= 0 && !out.dbias.empty() && out.dbias[plan.dense_bias];
  const bool relative = plan.relative_bias >= 0 && !out.dbias.empty() && out.dbias[plan.relative_bias];
  if (dense) args.dbias = detail::pair_view(kOp, "dbias", out.dbias[plan.dense_bias], size);
  const Tensor drelative = relative ? zeros_on(call.q, {plan.relative_count()}) : Tensor();
  if (relative) args.drelative = drelative.view().as<float>();

  if (plan.mixing.kind != kernels::Mixing::none || !kernels::kernels_of(plan.device).attention_backward) {
    within_memory(kOp, static_cast<size_t>(plan.relative_count() + size.Tk) * sizeof(double), "sums of gradients", [&] {
      run(&Table::composed_backward, {args, plan.mixing, out.dmix ? out.dmix.view() : View{}}, call.q);
    });
  } else {
    run(&Table::attention_backward, args, call.q);
  }
  clear_rest(plan, out.dk);
  clear_rest(plan, out.dv);
  if (!relative) return;
  const View to = out.dbias[plan.relative_bias].view();
  const bool alibi = to.rank == 1;
  run(&Table::relative_bias_backward,
      {.drelative = drelative.view().as<float>(),
       .dslopes = alibi ? to : View{},
       .dtable = alibi ? View{} : to,
       .buckets = plan.buckets,
       .distances = plan.distances},
      drelative);
}

}  // namespace

AttentionGradients attention_backward(const AttentionCall& call, const Tensor& d_o, const Tensor& d_lse,
                                      const AttentionOptions& options) {
  const AttentionPlan plan = plan_backward(call, {d_o, d_lse}, options);

  AttentionGradients out{.dq = empty_like(call.q), .dk = empty_like(call.k), .dv = empty_like(call.v)};
  for (const Bias& bias : options.bias) out.dbias.push_back(empty_on(call.q, bias_shape(bias)));
  if (options.sink) out.dsink = empty_on(call.q, {plan.size.H});
  if (plan.scores.similarity == kernels::Similarity::cosine) out.dtau = empty_on(call.q, {plan.size.H});
  if (plan.mixing.kind != kernels::Mixing::none) out.dmix = empty_on(call.q, mix_shape(plan));
  run_backward(plan, out, call, {d_o, d_lse});

  const std::vector<Tensor> inputs = traceable(call, {d_o, d_lse}, options);
  const auto refuse = [&](Tensor& each) {
    if (each) each = refuse_gradient(kOp, each, inputs);
  };
  for (Tensor* each : {&out.dq, &out.dk, &out.dv, &out.dsink, &out.dtau, &out.dmix}) refuse(*each);
  for (Tensor& each : out.dbias) refuse(each);
  return out;
}

void attention_backward_into(const AttentionGradients& out, const AttentionCall& call, const OutputGradients& gradients,
                             const AttentionOptions& options) {
  const AttentionPlan plan = plan_backward(call, gradients, options);
  check_outputs(plan, out, call, gradients, options);
  refuse_traced("attention_backward_into", traceable(call, gradients, options));
  run_backward(plan, out, call, gradients);
}

}  // namespace mh
