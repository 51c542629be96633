// The plain three-step algorithm in the type of its inputs: its errors against the reference set the bounds of the op.
#pragma once

#include "multihead/ops/attention/attention.h"

// f32 arithmetic with S and P held whole; for bf16 and f16 inputs S, P, dP and dS are rounded to that type.
// Results in the types of the op's; gradients of options come flat.
namespace mh::plain {

AttentionResult attention(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionOptions& options = {});

// Recomputes what it needs: call.result is not read.
AttentionGradients attention_backward(const AttentionCall& call, const Tensor& d_o, const Tensor& d_lse = {},
                                      const AttentionOptions& options = {});

}  // namespace mh::plain
