// A configuration of shapes.h as a type, its launch, and the tables of launches.
#pragma once

#include <type_traits>

#include "multihead/kernels/cuda/hopper/shapes.h"
#include "multihead/kernels/cuda/hopper/task.h"
#include "multihead/kernels/cuda/launch.h"

#include <cuda.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

namespace mh::kernels::cuda {

template <Element kType>
using TypeOf = std::conditional_t<kType == Element::f16, __half, __nv_bfloat16>;

struct Maps {
  CUtensorMap q, g, k, v;
};

// Instance N of each kernel, defined in its own translation unit (forward.cu, dq.cu, dkv.cu compiled with MH_SHAPE =
// N).
template <int N>
cudaError_t run_forward(const Maps& maps, const Call& call, const Task& task, int blocks, cudaStream_t stream);
template <int N>
cudaError_t run_dq(const Maps& maps, const Call& call, const Task& task, int blocks, cudaStream_t stream);
template <int N>
cudaError_t run_dkv(const Maps& maps, const Call& call, const Task& task, int blocks, cudaStream_t stream);

}  // namespace mh::kernels::cuda
