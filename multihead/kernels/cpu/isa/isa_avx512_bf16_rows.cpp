// The rows of the rung of AVX512_BF16, and decode, which is bound by the rows of a cache: products of bf16 pairs, and
// of 8-bit and 16-bit integers by VNNI, which its machines have.
#include <immintrin.h>

#include "multihead/kernels/cpu/isa/rung_headers.h"

static_assert(HWY_TARGET == HWY_AVX3,
              "the flags of this rung select another Highway target than the one it is named for");

#define MH_PAIR_PRODUCTS

namespace mh::kernels {
namespace {

#include "multihead/kernels/cpu/attention/decode/decode.inl"
#include "multihead/kernels/cpu/gemm/linear_top_k.inl"
#include "multihead/kernels/cpu/gemm/linear_top_k_pack.inl"
#include "multihead/kernels/cpu/philox.inl"
#include "multihead/kernels/cpu/rows/max.inl"
#include "multihead/kernels/cpu/rows/top_list.inl"
#include "multihead/kernels/cpu/rows/vectors.inl"
#include "multihead/kernels/cpu/vector_math.inl"

}  // namespace

Table avx512_bf16::refine_rows(Table below) {
  below.attention_decode.run = attention_decode;
  below.linear_top_k.run = linear_top_k;
  below.linear_top_k_pack.run = linear_top_k_pack;
  return below;
}

}  // namespace mh::kernels
