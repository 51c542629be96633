// dQ, dK and dV of the tiles that met garbage in dropped places, row by row and key by key.
#include "multihead/kernels/cuda/hopper/careful.h"
#include "multihead/kernels/cuda/hopper/instance.h"

namespace mh::kernels::cuda {
namespace {

constexpr int kWarps = 8;

// One warp a tile, first those of dQ (of dq_rows rows), then those of 128 keys; each flag stands for 16 of its rows or
// keys.
template <class T>
__global__ __launch_bounds__(kWarps * 32) void mend_tiles(const __grid_constant__ Call call,
                                                          const __grid_constant__ Task dq, int dq_rows,
                                                          const __grid_constant__ Task dkv) {
  const int n = blockIdx.x * kWarps + threadIdx.x / 32, lane = threadIdx.x % 32;
  const bool by_rows = n < dq.tiles;
  const int tile = by_rows ? n : n - dq.tiles, pieces = by_rows ? dq_rows / 16 : 8;
  if (tile >= dkv.tiles && !by_rows) return;
  uint32_t bad = __ballot_sync(~0u, lane < pieces && (by_rows ? dq : dkv).flags[tile * 16 + lane]);
  if (bad == 0) return;
  // The order of tiles is that of the kernel that flagged them.
  const bool masked = call.options.behind < kFar || call.options.ahead < kFar || call.options.has_prefix;
  const Task& task = by_rows ? dq : dkv;
  const int heads = by_rows ? call.H : call.Hkv;
  const TileAt at = masked ? tile_at<true>(task, tile, heads) : tile_at<false>(task, tile, heads);
  const Span span = span_of(call, at.b);
  const Interval mask = interval_of(call.options, span);
  for (; bad; bad &= bad - 1) {
    const int piece = (__ffs(bad) - 1) * 16;
    if (by_rows) {
      const int64_t head = (static_cast<int64_t>(at.b) * call.H + at.h) * task.padded;
      careful_dq<T>(call, span, mask, task.lse2 + head, task.delta + head, at.h, at.m * dq_rows + piece, lane);
    } else {
      const int keys = (masked ? task.blocks - 1 - at.m : at.m) * 128;
      careful_dkv<T>(call, span, mask, task.lse2, task.delta, task.padded, at.b, at.h, keys + piece, lane);
    }
  }
}

}  // namespace

cudaError_t mend(const Call& call, const Task& dq, int dq_rows, const Task& dkv, cudaStream_t stream) {
  const Grid grid{dim3((dq.tiles + dkv.tiles + kWarps - 1) / kWarps), kWarps * 32};
  if (call.q.type == Element::f16) return launch(mend_tiles<__half>, grid, stream, call, dq, dq_rows, dkv);
  return launch(mend_tiles<__nv_bfloat16>, grid, stream, call, dq, dq_rows, dkv);
}

}  // namespace mh::kernels::cuda
