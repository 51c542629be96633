// One configuration of the dK and dV kernel: MH_SHAPE is its place in kDkvShapes.
#include "multihead/kernels/cuda/hopper/dkv.h"
#include "multihead/kernels/cuda/hopper/instance.h"

namespace mh::kernels::cuda {

template <>
cudaError_t run_dkv<MH_SHAPE>(const Maps& maps, const Call& call, const Task& task, int blocks, cudaStream_t stream) {
  constexpr DkvEntry e = kDkvShapes[MH_SHAPE];
  using Shape = DkvShape<TypeOf<e.type>, e.D, e.BM, e.stages, e.k_steps, e.v_steps, e.masked>;
  return launch(hopper_dkv<Shape>, Grid{dim3(blocks), Shape::kThreads, Shape::kShared}, stream, maps.q, maps.g, maps.k,
                maps.v, call, task);
}

}  // namespace mh::kernels::cuda
