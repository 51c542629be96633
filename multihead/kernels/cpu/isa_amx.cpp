// The rung of AMX tiles for bf16.
#include <immintrin.h>

#include "multihead/kernels/cpu/rung_headers.h"

static_assert(HWY_TARGET == HWY_AVX3_DL, "the flags of this rung select another Highway target than the one it is named for");

namespace mh::kernels {
namespace {

#include "multihead/kernels/cpu/attention_fma.inl"
#include "multihead/kernels/cpu/tile.inl"
#include "multihead/kernels/cpu/attention_tiles.inl"
#include "multihead/kernels/cpu/turn.inl"
#include "multihead/kernels/cpu/gemm_pack.inl"
#include "multihead/kernels/cpu/activation_math.inl"
#include "multihead/kernels/cpu/gemm_epilogue.inl"
#include "multihead/kernels/cpu/gemm_tile_operands.inl"
#include "multihead/kernels/cpu/gemm_tile_beat.inl"
#include "multihead/kernels/cpu/gemm_tiles.inl"
#include "multihead/kernels/cpu/limits_amx.inl"

}  // namespace

Table amx::refine(Table below) {
  below = TileGemm<HardwareTiles>::refine(TileAttention<HardwareTiles>::refine(below));
  below.tile_peak.run = tile_loop;
  below.tile_probe.run = tile_probe_loop;
  return below;
}

}  // namespace mh::kernels
