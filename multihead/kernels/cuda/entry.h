// The attention kernels of an NVIDIA GPU: what libmultihead_cuda.so offers.
//
// Every pointer of a Call is memory of the current device. `workspace` is the caller's, of forward_workspace(call) or
// backward_workspace(call) bytes (plan.h), not shared by calls that may run at the same time; its contents do not
// matter. Results are the same bits in every run, and for a sequence alone or in a batch.
#pragma once

#include <cuda_runtime.h>

#include "multihead/kernels/cuda/call.h"

namespace mh::kernels::cuda {

// Which kernels a call may use; `generic` is the reference on the device.
enum class Route { best, generic };

cudaError_t attention_forward(const Call& call, void* workspace, cudaStream_t stream, Route route = Route::best);
cudaError_t attention_backward(const Call& call, void* workspace, cudaStream_t stream, Route route = Route::best);

// What each translation unit gives to entry.cu.
struct Rows {
  float *lse2 = nullptr, *delta = nullptr, *tau = nullptr;  // (B, H, padded)
  int padded = 0;
};
cudaError_t forward_generic(const Call& call, cudaStream_t stream);
cudaError_t backward_rows(const Call& call, const Rows& rows, cudaStream_t stream);
cudaError_t backward_generic(const Call& call, const Rows& rows, cudaStream_t stream);
cudaError_t backward_extras(const Call& call, const Rows& rows,
                            cudaStream_t stream);  // dbias, drelative, dsink, dscale

cudaError_t forward_hopper(const Call& call, int shape, uint16_t* flags, cudaStream_t stream);
cudaError_t backward_hopper(const Call& call, int dq, int dkv, const Rows& rows, uint16_t* flags, cudaStream_t stream);
cudaError_t decode_hopper(const Call& call, float* partial, float* partial_lse, cudaStream_t stream);

}  // namespace mh::kernels::cuda
