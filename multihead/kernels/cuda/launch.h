// The one door to the GPU: every kernel is launched here.
#pragma once

#include <cuda_runtime.h>

namespace mh::kernels::cuda {

struct Grid {
  dim3 blocks;
  int threads = 128;
  int shared_bytes = 0;  // dynamic shared memory; past 48 KB the kernel's limit is raised first
  bool early = false;    // starts before the kernel in front of it has ended; it waits for it by griddepcontrol.wait
};

template <class... Params, class... Args>
cudaError_t launch(void (*kernel)(Params...), const Grid& grid, cudaStream_t stream, Args&&... args) {
  if (grid.shared_bytes > 48 * 1024) {
    const cudaError_t raised = cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel),
                                                    cudaFuncAttributeMaxDynamicSharedMemorySize, grid.shared_bytes);
    if (raised != cudaSuccess) return raised;
  }
  cudaLaunchConfig_t config = {};
  config.gridDim = grid.blocks;
  config.blockDim = dim3(grid.threads);
  config.dynamicSmemBytes = grid.shared_bytes;
  config.stream = stream;
  cudaLaunchAttribute overlap = {};
  overlap.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  overlap.val.programmaticStreamSerializationAllowed = 1;
  config.attrs = &overlap;
  config.numAttrs = grid.early ? 1 : 0;
  return cudaLaunchKernelEx(&config, kernel, static_cast<Params>(args)...);
}

}  // namespace mh::kernels::cuda
