// The rows of the rung of AVX512_BF16: its machines have VNNI, which adds products of 16-bit integers in one instruction.
#include <immintrin.h>

#include "multihead/kernels/cpu/rung_headers.h"

static_assert(HWY_TARGET == HWY_AVX3, "the flags of this rung select another Highway target than the one it is named for");

namespace mh::kernels {
namespace {

#include "multihead/kernels/cpu/vector_math.inl"
#include "multihead/kernels/cpu/philox.inl"
#include "multihead/kernels/cpu/row_vectors.inl"
#include "multihead/kernels/cpu/row_max.inl"
#include "multihead/kernels/cpu/top_list.inl"
#include "multihead/kernels/cpu/linear_top_k_pack.inl"
#include "multihead/kernels/cpu/linear_top_k.inl"

}  // namespace

Table avx512_bf16::refine_rows(Table below) {
  below.linear_top_k.run = linear_top_k;
  below.linear_top_k_pack.run = linear_top_k_pack;
  return below;
}

}  // namespace mh::kernels
