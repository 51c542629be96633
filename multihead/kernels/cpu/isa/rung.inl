// Every body of one instruction set, and its line in the table. Included once by each isa_*.cpp, after MH_RUNG and
// MH_HIGHWAY.

#include "multihead/kernels/cpu/isa/rung_headers.h"

static_assert(HWY_TARGET == MH_HIGHWAY,
              "the flags of this rung select another Highway target than the one it is named for");

namespace mh::kernels {
namespace {

#include "multihead/kernels/cpu/attention/decode/decode.inl"
#include "multihead/kernels/cpu/attention/fma/fma.inl"
#include "multihead/kernels/cpu/attention/mean.inl"
#include "multihead/kernels/cpu/attention/statistics.inl"
#include "multihead/kernels/cpu/attention/tasks.inl"
#include "multihead/kernels/cpu/attention/weights.inl"
#include "multihead/kernels/cpu/gemm/epilogue.inl"
#include "multihead/kernels/cpu/gemm/filled.inl"
#include "multihead/kernels/cpu/gemm/gemm.inl"
#include "multihead/kernels/cpu/gemm/pack.inl"
#include "multihead/kernels/cpu/gemm/panels.inl"
#include "multihead/kernels/cpu/gemm/stream.inl"
#include "multihead/kernels/cpu/limits.inl"
#include "multihead/kernels/cpu/rows/activation_math.inl"
#include "multihead/kernels/cpu/turn.inl"

void gemm_pack(const GemmPackArgs& args, Queue&) {
  const int64_t k = args.w.size[0], n = args.w.size[1];
  const bool pairs = args.w.dtype == DType::bf16;
  const Panels panels{n, pairs ? steps_of<bf16>(k) : k};
  if (args.bytes) *args.bytes = panels.words() * 4;
  if (!args.packed) return;
  uint32_t* out = static_cast<uint32_t*>(args.packed);
  if (pairs) {
    pack_panels<bf16>(args.w, k, panels, 0, panels.count(), out);
  } else {
    pack_panels<float>(args.w, k, panels, 0, panels.count(), out);
  }
}

void gemm(const GemmArgs& args, Queue&) {
  if (args.a.dtype == DType::bf16) {
    gemm_of<bf16>(args);
  } else {
    gemm_of<float>(args);
  }
}

}  // namespace

Table MH_RUNG::refine(Table below) {
  below.attention_forward.run = attention_forward;
  below.attention_decode.run = attention_decode;
  below.attention_backward.run = attention_backward;
  below.attention_weights.run = attention_weights;
  below.attention_mean.run = attention_mean;
  below.attention_statistics.run = attention_statistics;
  below.gemm.run = gemm;
  below.gemm_pack.run = gemm_pack;
  return below;
}

Probes MH_RUNG::probe(Probes below) {
  below.fma_peak.run = fma_loop;
  below.plain_read.run = read_loop;
  return below;
}

}  // namespace mh::kernels
