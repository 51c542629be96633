// Which kernel a planned call runs on, and running it. Internal to ops.
#pragma once

#include <string>

#include "multihead/kernels/table.h"
#include "multihead/ops/attention/plan.h"

namespace mh::detail {

enum class Route {
  forward,
  decode,
  split,
  composed
};  // split: some sequences of a packed batch decode, the others do not

Route route_of(const kernels::Table& table, const AttentionPlan& plan);

// What the plan says of a call; its outputs are still to be named.
kernels::AttentionForwardArgs forward_args(const AttentionPlan& plan);

// Runs the plan into o and lse (which may be empty), already checked; fills its relative biases.
void run_forward(AttentionPlan& plan, const Tensor& o, const Tensor& lse);

// lse as the backward kernel's own scores give it. The decode kernel sums q · k in another order, and at large scores
// p = exp(s - lse) feels the difference: where a row that decodes has an lse that differs from the forward kernel's by
// no more than rounding, the latter is taken. An lse over more keys than the call's stays as it is.
Tensor backward_lse(const AttentionPlan& plan, const Tensor& lse);

}  // namespace mh::detail
