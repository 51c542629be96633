// The bodies that work on rows and flat arrays, of one instruction set. Included once by each isa_*_rows.cpp, after
// MH_RUNG and MH_HIGHWAY: apart from rung.inl, so that neither waits for the other's compilation.

#include "multihead/kernels/cpu/isa/rung_headers.h"

static_assert(HWY_TARGET == MH_HIGHWAY,
              "the flags of this rung select another Highway target than the one it is named for");

namespace mh::kernels {
namespace {

#include "multihead/kernels/cpu/gemm/linear_top_k.inl"
#include "multihead/kernels/cpu/gemm/linear_top_k_pack.inl"
#include "multihead/kernels/cpu/gemm/sparse_linear.inl"
#include "multihead/kernels/cpu/philox.inl"
#include "multihead/kernels/cpu/rows/activation.inl"
#include "multihead/kernels/cpu/rows/activation_math.inl"
#include "multihead/kernels/cpu/rows/cross_entropy.inl"
#include "multihead/kernels/cpu/rows/dropout_rows.inl"
#include "multihead/kernels/cpu/rows/elementwise.inl"
#include "multihead/kernels/cpu/rows/embedding.inl"
#include "multihead/kernels/cpu/rows/max.inl"
#include "multihead/kernels/cpu/rows/normalise.inl"
#include "multihead/kernels/cpu/rows/recurrent.inl"
#include "multihead/kernels/cpu/rows/reduce.inl"
#include "multihead/kernels/cpu/rows/rope.inl"
#include "multihead/kernels/cpu/rows/softmax.inl"
#include "multihead/kernels/cpu/rows/top_k.inl"
#include "multihead/kernels/cpu/rows/top_list.inl"
#include "multihead/kernels/cpu/rows/update.inl"
#include "multihead/kernels/cpu/rows/vectors.inl"
#include "multihead/kernels/cpu/vector_math.inl"

}  // namespace

Table MH_RUNG::refine_rows(Table below) {
  below.normalise_forward.run = normalise_forward;
  below.normalise_backward.run = normalise_backward;
  below.softmax_forward.run = softmax_forward;
  below.softmax_backward.run = softmax_backward;
  below.log_sum_exp.run = log_sum_exp;
  below.top_k.run = top_k;
  below.linear_top_k.run = linear_top_k;
  below.linear_top_k_pack.run = linear_top_k_pack;
  below.sparse_linear.run = sparse_linear;
  below.cross_entropy_forward.run = cross_entropy_forward;
  below.cross_entropy_backward.run = cross_entropy_backward;
  below.embedding_forward.run = embedding_forward;
  below.embedding_backward.run = embedding_backward;
  below.dropout.run = dropout;
  below.activation_forward.run = activation_forward;
  below.activation_backward.run = activation_backward;
  below.gated_forward.run = gated_forward;
  below.gated_backward.run = gated_backward;
  below.rope.run = rope;
  below.recurrent_forward.run = recurrent_forward;
  below.recurrent_backward.run = recurrent_backward;
  below.additive_forward.run = additive_forward;
  below.additive_backward.run = additive_backward;
  below.unary.run = unary;
  below.binary.run = binary;
  below.reduce.run = reduce;
  below.accumulate.run = accumulate;
  below.adamw.run = adamw;
  below.sum_of_squares.run = sum_of_squares;
  below.lerp.run = lerp;
  return below;
}

}  // namespace mh::kernels
