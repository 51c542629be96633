// Chooses between the decode kernel, the forward kernel and the composed path, and runs it.
#include "multihead/ops/attention/run.h"

#include "multihead/kernels/attention_decode.h"
#include "multihead/kernels/merge.h"
#include "multihead/ops/run.h"

namespace mh::detail {

kernels::AttentionForwardArgs forward_args(const AttentionPlan& plan) {
  kernels::AttentionForwardArgs args;
  args.q = plan.q;
  args.kv = plan.kv;
  args.scores = plan.scores;
  args.sequences = plan.sequence_list();
  return args;
}

namespace {

bool decodes(const AttentionPlan& plan, const kernels::Sequence& sequence) {
  kernels::AttentionForwardArgs args = forward_args(plan);
  args.sequences = {&sequence, 1};
  return kernels::decode_takes(args);
}

// The sequences that decode, or the others; those left out stay in the list, without rows, so that numbers do not
// shift.
std::vector<kernels::Sequence> only(const AttentionPlan& plan, bool decoding) {
  std::vector<kernels::Sequence> list = plan.sequences;
  for (kernels::Sequence& sequence : list) {
    if (decodes(plan, sequence) != decoding) sequence.q_len = 0;
  }
  return list;
}

}  // namespace

Route route_of(const kernels::Table& table, const AttentionPlan& plan) {
  if (plan.mixing.kind != kernels::Mixing::none || !table.attention_forward) return Route::composed;
  if (!table.attention_decode) return Route::forward;
  int64_t decoding = 0;
  for (const kernels::Sequence& sequence : plan.sequences) decoding += decodes(plan, sequence);
  if (decoding == 0) return Route::forward;
  return decoding == static_cast<int64_t>(plan.sequences.size()) ? Route::decode : Route::split;
}

void run_forward(AttentionPlan& plan, const Tensor& o, const Tensor& lse) {
  const AttentionSizes& size = plan.size;
  if (size.batch == 0 || size.rows == 0) return;
  const Route route = route_of(kernels::kernels_of(plan.device), plan);
  fill_relative(plan, route == Route::decode);
  kernels::AttentionForwardArgs args = forward_args(plan);
  args.o = heads_view(size, o);
  if (lse) args.lse = lse_view(size, lse);
  switch (route) {
    case Route::forward: run(&Table::attention_forward, args, o); return;
    case Route::decode: run(&Table::attention_decode, args, o); return;
    case Route::composed: run(&Table::composed_forward, {args, plan.mixing}, o); return;
    case Route::split:
      // Each sequence by its own size, never by its neighbours': the batch must not change a bit.
      const std::vector<kernels::Sequence> few = only(plan, true), many = only(plan, false);
      std::vector<Tensor> held;
      args.sequences.data = placed(few, plan.device, held);
      run(&Table::attention_decode, args, o);
      args.sequences.data = placed(many, plan.device, held);
      run(&Table::attention_forward, args, o);
  }
}

Tensor backward_lse(const AttentionPlan& plan, const Tensor& lse) {
  const AttentionSizes& size = plan.size;
  const Route route = route_of(kernels::kernels_of(plan.device), plan);
  if ((route != Route::decode && route != Route::split) || size.batch == 0 || size.rows == 0) return lse;
  const Tensor own = lse.clone(), o = empty_on(lse, output_shape(size), plan.q.dtype);
  kernels::AttentionForwardArgs args = forward_args(plan);
  args.o = heads_view(size, o);
  args.lse = lse_view(size, own);
  const std::vector<kernels::Sequence> few = only(plan, true);
  std::vector<Tensor> held;
  args.sequences.data = placed(few, plan.device, held);
  run(&Table::attention_forward, args, o);

  const Tensor given = lse.contiguous();
  run(&Table::lse_choice, {.own = own.view().as<float>(), .given = given.view().as<float>(), .count = own.count()},
      own);
  return own;
}

}  // namespace mh::detail
