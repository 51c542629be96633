// The naive double-precision reference of attention: every option, forward and backward, judged by nobody.
#pragma once

#include <cstdint>
#include <vector>

#include "multihead/ops/attention/attention.h"

// Every function has the meaning of its namesake in ops/attention/attention.h. Inputs may have any strides and any
// element type, f64 included, also in the options; results are f64 in the shapes of the op's results.
namespace mh::reference {

AttentionResult attention(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionOptions& options = {});

// Recomputes what it needs: call.result is not read.
AttentionGradients attention_backward(const AttentionCall& call, const Tensor& d_o, const Tensor& d_lse = {},
                                      const AttentionOptions& options = {});

AttentionResult merge(const std::vector<AttentionResult>& parts);
std::vector<AttentionResult> merge_backward(const std::vector<AttentionResult>& parts, const AttentionResult& gradient);

Tensor attention_weights(const Tensor& q, const Tensor& k, const AttentionOptions& options = {},
                         const std::vector<int32_t>& heads = {}, const std::vector<int32_t>& rows = {});

AttentionStatistics attention_statistics(const Tensor& q, const Tensor& k, const AttentionOptions& options = {},
                                         int top = 1);

// Which rows keep no pair at all: u8 in the shape of lse.
Tensor empty_rows(const Tensor& q, const Tensor& k, const AttentionOptions& options = {});

}  // namespace mh::reference
