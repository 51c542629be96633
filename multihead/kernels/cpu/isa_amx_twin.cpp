// The amx rung with every tile instruction done in software.
#include <immintrin.h>

#include "multihead/kernels/cpu/rung_headers.h"

static_assert(HWY_TARGET == HWY_AVX3, "the flags of this rung select another Highway target than the one it is named for");

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

}  // namespace

Table twin::refine(Table below) { return TileGemm<SoftwareTiles>::refine(TileAttention<SoftwareTiles>::refine(below)); }

}  // namespace mh::kernels
