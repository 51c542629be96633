// From a call to kernels: the plan, the workspace, the order of launches.
#include "multihead/kernels/cuda/entry.h"

#include "multihead/kernels/cuda/plan.h"

namespace mh::kernels::cuda {
namespace {

bool is_hopper() {
  int device = 0, major = 0;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
  return major == 9;
}

// Cuts the caller's workspace into aligned pieces.
struct Pieces {
  char* at;
  template <class T>
  T* take(int64_t count) {
    char* piece = at;
    at += aligned(count * static_cast<int64_t>(sizeof(T)));
    return reinterpret_cast<T*>(piece);
  }
};

Pieces pieces_of(void* workspace) {
  const auto address = (reinterpret_cast<uintptr_t>(workspace) + 255) / 256 * 256;
  return {reinterpret_cast<char*>(address)};
}

}  // namespace

cudaError_t attention_forward(const Call& call, void* workspace, cudaStream_t stream, Route route) {
  Pieces pieces = pieces_of(workspace);
  const bool hopper = route == Route::best && is_hopper();
  if (hopper && !decode_refuses(call)) {
    const int64_t chunks = int64_t{call.B} * call.H * most_decode_chunks(call.Tk);
    float* lse = pieces.take<float>(chunks);
    return decode_hopper(call, pieces.take<float>(chunks * call.Dv), lse, stream);
  }
  if (hopper && !hopper_refuses_forward(call)) {
    auto* flags = pieces.take<uint16_t>(int64_t{16} * call.B * call.H * whole_tiles(call.Tq, 64));
    return forward_hopper(call, forward_shape(call), flags, stream);
  }
  return forward_generic(call, stream);
}

cudaError_t attention_backward(const Call& call, void* workspace, cudaStream_t stream, Route route) {
  if (call.B * call.H == 0) return cudaSuccess;
  Pieces pieces = pieces_of(workspace);
  Rows rows;
  rows.padded = padded_rows(call.Tq);
  const int64_t count = int64_t{call.B} * call.H * rows.padded + 256;
  rows.lse2 = pieces.take<float>(count);
  rows.delta = pieces.take<float>(count);
  rows.tau = pieces.take<float>(count);
  auto* flags = pieces.take<uint16_t>(backward_flags(call));
  cudaError_t error = backward_rows(call, rows, stream);
  if (error != cudaSuccess) return error;
  if (route == Route::best && is_hopper() && !hopper_refuses_backward(call))
    error = backward_hopper(call, dq_shape(call), dkv_shape(call), rows, flags, stream);
  else
    error = backward_generic(call, rows, stream);
  if (error != cudaSuccess) return error;
  return backward_extras(call, rows, stream);
}

}  // namespace mh::kernels::cuda
