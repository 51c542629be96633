// One configuration of the dQ kernel: MH_SHAPE is its place in kDqShapes.
#include "multihead/kernels/cuda/hopper/dq.h"
#include "multihead/kernels/cuda/hopper/instance.h"

namespace mh::kernels::cuda {

template <>
cudaError_t run_dq<MH_SHAPE>(const Maps& maps, const Call& call, const Task& task, int blocks, cudaStream_t stream) {
  constexpr DqEntry e = kDqShapes[MH_SHAPE];
  using Shape = DqShape<TypeOf<e.type>, e.D, e.groups, e.BN, e.k_stages, e.v_stages, e.masked>;
  return launch(hopper_dq<Shape>, Grid{dim3(blocks), Shape::kThreads, Shape::kShared}, stream, maps.q, maps.g, maps.k,
                maps.v, call, task);
}

}  // namespace mh::kernels::cuda
