// How tiles come into shared memory: tensor maps made on the host; one TMA a tile, or one per chunk of 64 columns.
#pragma once

#include <cudaTypedefs.h>

#include "multihead/kernels/cuda/hopper/sm90.h"

namespace mh::kernels::cuda {

// rows × 16-bit columns of (entry, head): `chunks` chunks, rows × 128 bytes each. Columns past the array's width and
// rows past its end come as zeros. joined: the map was encoded so (maps.h).
template <int kChunks, int kRows>
MH_DEVICE void load_tile(uint32_t to, const CUtensorMap* map, uint32_t barrier, int row, int head, int entry,
                         bool joined) {
  if (kChunks > 1 && joined) {
    tma_load_joined(to, map, barrier, row, head, entry);
    return;
  }
#pragma unroll
  for (int c = 0; c < kChunks; ++c) tma_load(to + c * kRows * 128, map, barrier, c * 64, row, head, entry);
}

}  // namespace mh::kernels::cuda
