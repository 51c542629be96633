// Every body of one instruction set, and its line in the table. Included once by each isa_*.cpp, after MH_RUNG and MH_HIGHWAY.

#include <hwy/highway.h>
#include <hwy/cache_control.h>
#include <math.h>
#include <sched.h>
#include <stdint.h>
#include <string.h>

#include "multihead/base/parallel.h"
#include "multihead/base/scratch.h"
#include "multihead/kernels/attention_decode.h"
#include "multihead/kernels/cpu/rungs.h"
#include "multihead/kernels/table.h"

static_assert(HWY_TARGET == MH_HIGHWAY, "the flags of this rung select another Highway target than the one it is named for");

namespace mh::kernels {
namespace {

#include "multihead/kernels/cpu/vector_math.inl"
#include "multihead/kernels/cpu/microkernel.inl"
#include "multihead/kernels/cpu/transpose.inl"
#include "multihead/kernels/cpu/attention_rows.inl"
#include "multihead/kernels/cpu/attention_block.inl"
#include "multihead/kernels/cpu/attention_scores.inl"
#include "multihead/kernels/cpu/dropout.inl"
#include "multihead/kernels/cpu/attention_forward.inl"
#include "multihead/kernels/cpu/attention_tasks.inl"
#include "multihead/kernels/cpu/attention_order.inl"
#include "multihead/kernels/cpu/attention_backward_tile.inl"
#include "multihead/kernels/cpu/attention_backward_bias.inl"
#include "multihead/kernels/cpu/attention_backward.inl"
#include "multihead/kernels/cpu/attention_backward_tasks.inl"
#include "multihead/kernels/cpu/gemm_pack.inl"
#include "multihead/kernels/cpu/gemm_epilogue.inl"
#include "multihead/kernels/cpu/gemm_stream.inl"
#include "multihead/kernels/cpu/gemm.inl"
#include "multihead/kernels/cpu/attention_decode.inl"
#include "multihead/kernels/cpu/attention_weights.inl"
#include "multihead/kernels/cpu/attention_statistics.inl"
#include "multihead/kernels/cpu/limits.inl"

}  // namespace

Table MH_RUNG::refine(Table below) {
  below.attention_forward.run = attention_forward;
  below.attention_decode.run = attention_decode;
  below.attention_backward.run = attention_backward;
  below.gemm.run = gemm;
  below.gemm_pack.run = gemm_pack;
  below.attention_weights.run = attention_weights;
  below.attention_statistics.run = attention_statistics;
  below.fma_peak.run = fma_loop;
  below.plain_read.run = read_loop;
  return below;
}

}  // namespace mh::kernels
