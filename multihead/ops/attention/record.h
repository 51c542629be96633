// Attention on the tape.
#pragma once

#include <vector>

#include "multihead/autograd/tape.h"
#include "multihead/ops/attention/attention.h"

namespace mh::detail {

// Every tensor of a call that may have a gradient; what the call lacks is empty.
std::vector<Tensor> traceable(const AttentionCall& call, const AttentionOptions& options);

// Records the call with its result; gradients are computed for the traced inputs alone.
// Gradient: saves q, k, v, o, lse and what the options hold.
AttentionResult record_attention(const AttentionCall& call, const AttentionOptions& options);

}  // namespace mh::detail
