// One configuration of the forward kernel: MH_SHAPE is its place in kForwardShapes.
#include "multihead/kernels/cuda/hopper/forward.h"
#include "multihead/kernels/cuda/hopper/instance.h"

namespace mh::kernels::cuda {

template <>
cudaError_t run_forward<MH_SHAPE>(const Maps& maps, const Call& call, const Task& task, int blocks,
                                  cudaStream_t stream) {
  constexpr ForwardEntry e = kForwardShapes[MH_SHAPE];
  using Shape =
      ForwardShape<TypeOf<e.type>, e.D, e.groups, e.BN, e.stages, e.masked, e.turns, e.fixed, e.per_sm, e.options>;
  return launch(hopper_forward<Shape>, Grid{dim3(blocks), Shape::kThreads, Shape::kShared}, stream, maps.q, maps.k,
                maps.v, call, task);
}

}  // namespace mh::kernels::cuda
