// Elements of any storage type as f32, and back.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include "multihead/kernels/cuda/call.h"

namespace mh::kernels::cuda {

__device__ __forceinline__ float load(const float* p, int64_t i) { return p[i]; }
__device__ __forceinline__ float load(const __nv_bfloat16* p, int64_t i) { return __bfloat162float(p[i]); }
__device__ __forceinline__ float load(const __half* p, int64_t i) { return __half2float(p[i]); }
__device__ __forceinline__ float load(const int8_t* p, int64_t i) { return static_cast<float>(p[i]); }
__device__ __forceinline__ void save(float* p, int64_t i, float x) { p[i] = x; }
__device__ __forceinline__ void save(__nv_bfloat16* p, int64_t i, float x) { p[i] = __float2bfloat16(x); }
__device__ __forceinline__ void save(__half* p, int64_t i, float x) { p[i] = __float2half(x); }

// An element whose type is known at run time only.
__device__ __forceinline__ float load_any(const Array& a, int64_t i) {
  switch (a.type) {
    case Element::bf16: return load(static_cast<const __nv_bfloat16*>(a.data), i);
    case Element::f16: return load(static_cast<const __half*>(a.data), i);
    case Element::i8: return load(static_cast<const int8_t*>(a.data), i);
    default: return load(static_cast<const float*>(a.data), i);
  }
}

}  // namespace mh::kernels::cuda
