// The rung of AVX512_BF16: matrix products and attention of bf16 by pairs.
#include <immintrin.h>

#include "multihead/kernels/cpu/isa/rung_headers.h"

static_assert(HWY_TARGET == HWY_AVX3,
              "the flags of this rung select another Highway target than the one it is named for");

#define MH_PAIR_PRODUCTS

namespace mh::kernels {
namespace {

#include "multihead/kernels/cpu/attention/fma/fma.inl"
#include "multihead/kernels/cpu/attention/tiles/tiles.inl"
#include "multihead/kernels/cpu/gemm/epilogue.inl"
#include "multihead/kernels/cpu/gemm/filled.inl"
#include "multihead/kernels/cpu/gemm/gemm.inl"
#include "multihead/kernels/cpu/gemm/pack.inl"
#include "multihead/kernels/cpu/gemm/panels.inl"
#include "multihead/kernels/cpu/gemm/stream.inl"
#include "multihead/kernels/cpu/limits_pairs.inl"
#include "multihead/kernels/cpu/rows/activation_math.inl"
#include "multihead/kernels/cpu/tile.inl"
#include "multihead/kernels/cpu/tile_pairs.inl"
#include "multihead/kernels/cpu/turn.inl"

void (*gemm_below)(const GemmArgs&, Queue&) = nullptr;

// Panels of w are those of the rung below, which packs them too.
void gemm(const GemmArgs& args, Queue& queue) {
  if (args.a.dtype == DType::bf16) return gemm_of<bf16>(args);
  gemm_below(args, queue);
}

}  // namespace

Table avx512_bf16::refine(Table below) {
  gemm_below = below.gemm.run;
  below.gemm.run = gemm;
  return TileAttention<PairTiles>::refine(below);
}

Probes avx512_bf16::probe(Probes below) {
  below.pair_peak.run = pair_loop;
  return below;
}

}  // namespace mh::kernels
