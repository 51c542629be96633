// Sees every call of attention of a forward pass, and may change what comes of it: recordings, ablations.
#pragma once

#include "multihead/ops/attention/attention.h"

namespace mh {

// A call that a MultiHeadAttention made over rows of ragged batches.
struct AttendedCall {
  AttentionCall call{};        // q (ΣTq, H, D), k and v (ΣTk, Hkv, D), and what came of them
  AttentionOptions options{};  // packed
  bool cross = false;          // keys of another batch than the queries
};

// Given to a Pass (Pass::watched_by); hears of calls in the order in which the layers run. Steps over kept keys and
// values (AttentionState), and calls of MultiHeadAttention that take padded batches, are not heard.
class AttentionObserver {
 public:
  virtual ~AttentionObserver() = default;
  // What it returns takes the place of call.result.o.
  virtual Tensor attended(const AttendedCall& call) = 0;
};

}  // namespace mh
