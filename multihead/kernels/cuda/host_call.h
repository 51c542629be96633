// A call as a program without CUDA hands it to libmultihead_cuda.so: what host.cu exports and kernels/gpu.cpp loads.
#pragma once

#include "multihead/kernels/cuda/call.h"

namespace mh::kernels::cuda {

// q, k, v, o, lse, d_o, d_lse, dq, dk, dv and dbias of `call` are memory of the device. Whatever else it points to may
// be memory of the host: what is read is copied to the device first; drelative, dsink and dscale, which are written,
// are copied back, and the call then waits for the stream. The sequences are `spans` of the host, or none where all are
// `call.span`.
struct HostCall {
  Call call;
  const Span* spans = nullptr;
  int device = 0;
  void* stream = nullptr;
};

// A program and a library of different versions must not meet: both name what they were compiled with.
inline constexpr int64_t kInterface = 1'000'000 + sizeof(HostCall);

inline constexpr int kLongestSentence = 512;

}  // namespace mh::kernels::cuda

// What the library exports. 0, or 1 with a sentence.
extern "C" {
int64_t mh_cuda_interface();
int mh_cuda_forward(const mh::kernels::cuda::HostCall* call, char* sentence);
int mh_cuda_backward(const mh::kernels::cuda::HostCall* call, char* sentence);
int mh_cuda_toolkit();  // 1000 · major + 10 · minor
}
