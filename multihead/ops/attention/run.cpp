// Chooses between the decode kernel, the forward kernel and the composed path, and runs it.
#include "multihead/ops/attention/run.h"

#include <cmath>

#include "multihead/kernels/attention_decode.h"
#include "multihead/kernels/cpu/dispatch.h"

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
  if (plan.mixing.kind != Mixing::none || !table.attention_forward) return Route::composed;
  if (!table.attention_decode) return Route::forward;
  int64_t decoding = 0;
  for (const kernels::Sequence& sequence : plan.sequences) decoding += decodes(plan, sequence);
  if (decoding == 0) return Route::forward;
  return decoding == static_cast<int64_t>(plan.sequences.size()) ? Route::decode : Route::split;
}

void run_forward(AttentionPlan& plan, const Tensor& o, const Tensor& lse) {
  const AttentionSizes& size = plan.size;
  if (size.batch == 0 || size.rows == 0) return;
  const kernels::Table& table = kernels::cpu();
  const Route route = route_of(table, plan);
  fill_relative(plan, route == Route::decode);
  kernels::AttentionForwardArgs args = forward_args(plan);
  args.o = heads_view(size, o);
  if (lse) args.lse = lse_view(size, lse);
  switch (route) {
    case Route::forward: table.attention_forward(args); return;
    case Route::decode: table.attention_decode(args); return;
    case Route::composed: composed_forward(args, plan.mixing); return;
    case Route::split:
      // Each sequence by its own size, never by its neighbours': the batch must not change a bit.
      const std::vector<kernels::Sequence> few = only(plan, true), many = only(plan, false);
      args.sequences.data = few.data();
      table.attention_decode(args);
      args.sequences.data = many.data();
      table.attention_forward(args);
  }
}

Tensor backward_lse(const AttentionPlan& plan, const Tensor& lse) {
  const AttentionSizes& size = plan.size;
  const kernels::Table& table = kernels::cpu();
  const Route route = route_of(table, plan);
  if ((route != Route::decode && route != Route::split) || size.batch == 0 || size.rows == 0) return lse;
  const Tensor own = lse.clone(), o = empty(output_shape(size), plan.q.dtype);
  kernels::AttentionForwardArgs args = forward_args(plan);
  args.o = heads_view(size, o);
  args.lse = lse_view(size, own);
  const std::vector<kernels::Sequence> few = only(plan, true);
  args.sequences.data = few.data();
  table.attention_forward(args);

  const Tensor given = lse.contiguous();
  for (int64_t n = 0; n < own.count(); ++n) {
    float& mine = own.data<float>()[n];
    const float its = given.data<float>()[n];
    constexpr float kRounding = 1e-5f;
    if (!(std::abs(mine - its) <= kRounding * (1 + std::abs(its)))) mine = its;
  }
  return own;
}

}  // namespace mh::detail
