// Tensor maps for TMA: chunks of 64 columns of 16-bit elements, 128-byte swizzle.
#pragma once

#include <cuda.h>
#include <cudaTypedefs.h>
#include <cuda_runtime.h>

#include "multihead/kernels/cuda/call.h"

namespace mh::kernels::cuda {

struct Box {
  const Array& array;
  int heads, rows, width;
};

// The driver's encoder, without linking to the driver.
inline PFN_cuTensorMapEncodeTiled_v12000 encoder() {
  static const auto found = [] {
    void* entry = nullptr;
    cudaDriverEntryPointQueryResult result;
    if (cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &entry, 12000, cudaEnableDefault, &result) !=
        cudaSuccess)
      entry = nullptr;
    return reinterpret_cast<PFN_cuTensorMapEncodeTiled_v12000>(entry);
  }();
  return found;
}

// (entries, heads, rows, width) in boxes of tile_rows × 64. joined: in boxes of tile_rows × the whole width, chunk
// after chunk; only where the width is a multiple of 64, or the last chunk would read the next row. False: the driver
// refuses.
inline bool encode(CUtensorMap& map, const Box& box, int entries, int tile_rows, bool joined) {
  if (!encoder()) return false;
  // A stride of an axis of one element is never used, but it must be a valid one.
  struct Axis {
    int size;
    int64_t stride;  // elements
    int tile;
  };
  Axis axes[5] = {{joined ? 64 : box.width, 1, 64}, {box.rows, box.array.stride[2], tile_rows}};
  int count = 2;
  if (joined) axes[count++] = {box.width / 64, 64, box.width / 64};
  axes[count++] = {box.heads, box.array.stride[1], 1};
  axes[count++] = {entries, box.array.stride[0], 1};
  cuuint64_t dim[5], stride[4];
  cuuint32_t tile[5], step[5];
  for (int axis = 0; axis < count; ++axis) {
    dim[axis] = static_cast<cuuint64_t>(axes[axis].size);
    tile[axis] = static_cast<cuuint32_t>(axes[axis].tile);
    step[axis] = 1;
    if (axis > 0) stride[axis - 1] = axes[axis].size == 1 ? 16 : static_cast<cuuint64_t>(axes[axis].stride) * 2;
  }
  const auto type = box.array.type == Element::f16 ? CU_TENSOR_MAP_DATA_TYPE_FLOAT16 : CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
  return encoder()(&map, type, count, box.array.data, dim, stride, tile, step, CU_TENSOR_MAP_INTERLEAVE_NONE,
                   CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                   CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}

}  // namespace mh::kernels::cuda
