// The rung of AMX tiles for bf16.
#include <immintrin.h>

#include "multihead/kernels/cpu/isa/rung_headers.h"

static_assert(HWY_TARGET == HWY_AVX3_DL,
              "the flags of this rung select another Highway target than the one it is named for");

namespace mh::kernels {
namespace {

#include "multihead/kernels/cpu/attention/fma/fma.inl"
#include "multihead/kernels/cpu/attention/tiles/tiles.inl"
#include "multihead/kernels/cpu/gemm/epilogue.inl"
#include "multihead/kernels/cpu/gemm/pack.inl"
#include "multihead/kernels/cpu/gemm/tile_beat.inl"
#include "multihead/kernels/cpu/gemm/tile_operands.inl"
#include "multihead/kernels/cpu/gemm/tiles.inl"
#include "multihead/kernels/cpu/limits_amx.inl"
#include "multihead/kernels/cpu/rows/activation_math.inl"
#include "multihead/kernels/cpu/tile.inl"
#include "multihead/kernels/cpu/turn.inl"

}  // namespace

Table amx::refine(Table below) { return TileGemm<HardwareTiles>::refine(TileAttention<HardwareTiles>::refine(below)); }

Probes amx::probe(Probes below) {
  below.tile_peak.run = tile_loop;
  below.tile_probe.run = tile_probe_loop;
  return below;
}

}  // namespace mh::kernels
