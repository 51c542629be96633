// Every kernel, one line each. A device is a filled table; an instruction set refines the table below it.
#pragma once

#include <string_view>

#include "multihead/kernels/activation.h"
#include "multihead/kernels/attention.h"
#include "multihead/kernels/cross_entropy.h"
#include "multihead/kernels/dropout.h"
#include "multihead/kernels/elementwise.h"
#include "multihead/kernels/embedding.h"
#include "multihead/kernels/gemm.h"
#include "multihead/kernels/limits.h"
#include "multihead/kernels/linear_top_k.h"
#include "multihead/kernels/normalise.h"
#include "multihead/kernels/recurrent.h"
#include "multihead/kernels/rope.h"
#include "multihead/kernels/softmax.h"
#include "multihead/kernels/sparse_linear.h"
#include "multihead/kernels/update.h"

namespace mh::kernels {

[[noreturn]] void missing(std::string_view name);

template <class Args>
struct Kernel {
  std::string_view name;
  void (*run)(const Args&) = nullptr;

  explicit operator bool() const { return run != nullptr; }
  void operator()(const Args& args) const {
    if (!run) missing(name);
    run(args);
  }
};

struct Table {
  std::string_view rung;
  Kernel<AttentionForwardArgs> attention_forward{"attention_forward"};
  Kernel<AttentionForwardArgs> attention_decode{"attention_decode"};  // few queries over many keys, split over keys
  Kernel<AttentionBackwardArgs> attention_backward{"attention_backward"};
  Kernel<AttentionWeightsArgs> attention_weights{"attention_weights"};
  Kernel<AttentionMeanArgs> attention_mean{"attention_mean"};  // forward, with the mean of the weights over heads
  Kernel<AttentionStatisticsArgs> attention_statistics{"attention_statistics"};
  Kernel<GemmArgs> gemm{"gemm"};
  Kernel<GemmPackArgs> gemm_pack{"gemm_pack"};
  Kernel<NormaliseForwardArgs> normalise_forward{"normalise_forward"};
  Kernel<NormaliseBackwardArgs> normalise_backward{"normalise_backward"};
  Kernel<SoftmaxForwardArgs> softmax_forward{"softmax_forward"};
  Kernel<SoftmaxBackwardArgs> softmax_backward{"softmax_backward"};
  Kernel<LogSumExpArgs> log_sum_exp{"log_sum_exp"};
  Kernel<TopKArgs> top_k{"top_k"};
  Kernel<LinearTopKArgs> linear_top_k{"linear_top_k"};
  Kernel<LinearTopKPackArgs> linear_top_k_pack{"linear_top_k_pack"};
  Kernel<SparseLinearArgs> sparse_linear{"sparse_linear"};
  Kernel<CrossEntropyForwardArgs> cross_entropy_forward{"cross_entropy_forward"};
  Kernel<CrossEntropyBackwardArgs> cross_entropy_backward{"cross_entropy_backward"};
  Kernel<EmbeddingForwardArgs> embedding_forward{"embedding_forward"};
  Kernel<EmbeddingBackwardArgs> embedding_backward{"embedding_backward"};
  Kernel<DropoutArgs> dropout{"dropout"};
  Kernel<ActivationForwardArgs> activation_forward{"activation_forward"};
  Kernel<ActivationBackwardArgs> activation_backward{"activation_backward"};
  Kernel<GatedForwardArgs> gated_forward{"gated_forward"};
  Kernel<GatedBackwardArgs> gated_backward{"gated_backward"};
  Kernel<RopeArgs> rope{"rope"};
  Kernel<RecurrentForwardArgs> recurrent_forward{"recurrent_forward"};
  Kernel<RecurrentBackwardArgs> recurrent_backward{"recurrent_backward"};
  Kernel<AdditiveForwardArgs> additive_forward{"additive_forward"};
  Kernel<AdditiveBackwardArgs> additive_backward{"additive_backward"};
  Kernel<UnaryArgs> unary{"unary"};
  Kernel<BinaryArgs> binary{"binary"};
  Kernel<ReduceArgs> reduce{"reduce"};
  Kernel<AccumulateArgs> accumulate{"accumulate"};
  Kernel<AdamwArgs> adamw{"adamw"};
  Kernel<SumOfSquaresArgs> sum_of_squares{"sum_of_squares"};
  Kernel<LerpArgs> lerp{"lerp"};
  Kernel<LimitArgs> fma_peak{"fma_peak"};      // cpu/limits.inl: fma_loop
  Kernel<LimitArgs> plain_read{"plain_read"};  // cpu/limits.inl: read_loop
  Kernel<LimitArgs> pair_peak{"pair_peak"};    // cpu/limits_pairs.inl: pair_loop; only where bf16 is multiplied by pairs
  Kernel<LimitArgs> tile_peak{"tile_peak"};    // cpu/limits_amx.inl: tile_loop; only where there are tiles
  Kernel<LimitArgs> tile_probe{"tile_probe"};  // cpu/limits_amx.inl: tile_probe_loop
};

}  // namespace mh::kernels
