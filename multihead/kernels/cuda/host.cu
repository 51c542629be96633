// Calls from a program that does not know CUDA: small arrays come to the device, memory is taken in the order of the
// stream.
#include <cstdio>
#include <cstring>
#include <vector>

#include "multihead/kernels/cuda/entry.h"
#include "multihead/kernels/cuda/host_call.h"
#include "multihead/kernels/cuda/launch.h"
#include "multihead/kernels/cuda/plan.h"

namespace mh::kernels::cuda {
namespace {

bool on_host(const void* p) {
  cudaPointerAttributes attributes;
  if (cudaPointerGetAttributes(&attributes, p) != cudaSuccess) {
    cudaGetLastError();
    return true;
  }
  return attributes.type == cudaMemoryTypeUnregistered || attributes.type == cudaMemoryTypeHost;
}

int64_t bytes_of(Element type) {
  switch (type) {
    case Element::bf16:
    case Element::f16: return 2;
    case Element::i8:
    case Element::u8: return 1;
    default: return 4;
  }
}

// A piece of a buffer as parameters of a kernel: a copy from pageable memory would first wait for all that the stream
// holds.
struct Blob {
  uint4 words[252];
};
constexpr int64_t kBlobBytes = sizeof(Blob), kMostByBlobs = 16 * kBlobBytes;

__global__ void put_blob(const __grid_constant__ Blob blob, uint4* to, int count) {
  if (static_cast<int>(threadIdx.x) < count) to[threadIdx.x] = blob.words[threadIdx.x];
}

// Arrays of the host, packed into one buffer that is copied to the device.
class Staging {
 public:
  template <class T>
  void read(const T*& pointer, int64_t count) {
    if (!pointer || !on_host(pointer)) return;
    places_.push_back({const_cast<const void**>(reinterpret_cast<const void* const*>(&pointer)),
                       add(pointer, count * static_cast<int64_t>(sizeof(T)))});
  }
  void read(Array& array, const int64_t (&size)[4]) {
    if (!array || !on_host(array.data)) return;
    int64_t last = 0;
    for (int axis = 0; axis < 4; ++axis) last += array.stride[axis] * (size[axis] - 1);
    places_.push_back({const_cast<const void**>(reinterpret_cast<void**>(&array.data)),
                       add(array.data, (last + 1) * bytes_of(array.type))});
  }
  // A result of `count` floats: computed on the device, copied back by give_back.
  void write(float*& pointer, int64_t count) {
    if (!pointer || !on_host(pointer)) return;
    results_.push_back({pointer, &pointer, static_cast<int64_t>(buffer_.size()), count});
    buffer_.resize(buffer_.size() + aligned(count * 4));
  }

  int64_t bytes() const { return aligned(static_cast<int64_t>(buffer_.size())); }
  cudaError_t send(char* to, cudaStream_t stream) {
    for (const Place& place : places_) *place.pointer = to + place.offset;
    for (const Result& result : results_) *result.pointer = reinterpret_cast<float*>(to + result.offset);
    const auto size = static_cast<int64_t>(buffer_.size());  // a multiple of 256
    if (size > kMostByBlobs) return cudaMemcpyAsync(to, buffer_.data(), buffer_.size(), cudaMemcpyHostToDevice, stream);
    for (int64_t at = 0; at < size; at += kBlobBytes) {
      Blob blob;
      const int64_t bytes = size - at < kBlobBytes ? size - at : kBlobBytes;
      std::memcpy(&blob, buffer_.data() + at, bytes);
      const cudaError_t error = launch(put_blob, Grid{dim3(1), 256}, stream, blob, reinterpret_cast<uint4*>(to + at),
                                       static_cast<int>(bytes / 16));
      if (error != cudaSuccess) return error;
    }
    return cudaSuccess;
  }
  // Whether what was sent stays valid when a CUDA graph runs the call again.
  bool repeats() const { return results_.empty() && static_cast<int64_t>(buffer_.size()) <= kMostByBlobs; }
  cudaError_t give_back(cudaStream_t stream) {
    for (const Result& result : results_) {
      const cudaError_t error =
          cudaMemcpyAsync(result.home, *result.pointer, result.count * 4, cudaMemcpyDeviceToHost, stream);
      if (error != cudaSuccess) return error;
    }
    return results_.empty() ? cudaSuccess : cudaStreamSynchronize(stream);
  }

 private:
  struct Place {
    const void** pointer;
    int64_t offset;
  };
  struct Result {
    float* home;
    float** pointer;
    int64_t offset, count;
  };
  int64_t add(const void* from, int64_t bytes) {
    const auto offset = static_cast<int64_t>(buffer_.size());
    buffer_.resize(offset + aligned(bytes));
    std::memcpy(buffer_.data() + offset, from, bytes);
    return offset;
  }
  std::vector<char> buffer_;
  std::vector<Place> places_;
  std::vector<Result> results_;
};

void stage(Staging& staging, Call& call) {
  Options& o = call.options;
  staging.read(call.spans, call.B);
  staging.read(o.scale, call.H);
  staging.read(o.slopes, call.H);
  staging.read(o.sink, call.H);
  staging.read(o.relative, call.H * o.relative_count);
  staging.read(o.q_documents, {call.B, call.Tq, 1, 1});
  staging.read(o.k_documents, {call.B, call.Tk, 1, 1});
  for (int n = 0; n < o.dense_count; ++n) staging.read(o.dense[n].where, {call.B, call.H, call.Tq, call.Tk});
  staging.read(o.bias, {call.B, call.H, call.Tq, call.Tk});
  staging.write(call.drelative, call.H * o.relative_count);
  staging.write(call.dsink, call.H);
  staging.write(call.dscale, call.H);
}

class OnDevice {
 public:
  explicit OnDevice(int device) {
    cudaGetDevice(&before_);
    error = cudaSetDevice(device);
  }
  ~OnDevice() { cudaSetDevice(before_); }
  cudaError_t error;

 private:
  int before_ = 0;
};

int say(char* sentence, cudaError_t error, int64_t wanted) {
  size_t left = 0, all = 0;
  cudaGetLastError();
  if (error == cudaErrorMemoryAllocation && cudaMemGetInfo(&left, &all) == cudaSuccess)
    std::snprintf(sentence, kLongestSentence, "the GPU has no %.1f MiB left for this call; %.1f of %.1f MiB are free",
                  wanted / 1048576.0, left / 1048576.0, all / 1048576.0);
  else
    std::snprintf(sentence, kLongestSentence, "the GPU fails: %s", cudaGetErrorString(error));
  return 1;
}

template <class Run>
int run(const HostCall& given, char* sentence, int64_t (*workspace)(const Call&), Run&& kernels) {
  const OnDevice device(given.device);
  if (device.error != cudaSuccess) return say(sentence, device.error, 0);
  const auto stream = static_cast<cudaStream_t>(given.stream);
  Call call = given.call;
  call.spans = given.spans;
  Staging staging;
  stage(staging, call);
  cudaStreamCaptureStatus capturing = cudaStreamCaptureStatusNone;
  if (!staging.repeats() && cudaStreamIsCapturing(stream, &capturing) == cudaSuccess &&
      capturing != cudaStreamCaptureStatusNone) {
    std::snprintf(
        sentence, kLongestSentence,
        "a CUDA graph is captured from the stream of a call that copies large arrays from the host, or gradients to it; expected "
        "masks and biases on the GPU");
    return 1;
  }
  const int64_t bytes = staging.bytes() + workspace(call);
  void* memory = nullptr;
  cudaError_t error = cudaMallocAsync(&memory, bytes, stream);
  if (error != cudaSuccess) return say(sentence, error, bytes);
  error = staging.send(static_cast<char*>(memory), stream);
  if (error == cudaSuccess) error = kernels(call, static_cast<char*>(memory) + staging.bytes(), stream);
  if (error == cudaSuccess) error = staging.give_back(stream);
  const cudaError_t freed = cudaFreeAsync(memory, stream);
  if (error == cudaSuccess) error = freed;
  return error == cudaSuccess ? 0 : say(sentence, error, bytes);
}

}  // namespace
}  // namespace mh::kernels::cuda

using namespace mh::kernels::cuda;

int64_t mh_cuda_interface() { return kInterface; }

int mh_cuda_forward(const HostCall* call, char* sentence) {
  return run(*call, sentence, forward_workspace, [](const Call& c, void* workspace, cudaStream_t stream) {
    return attention_forward(c, workspace, stream);
  });
}

int mh_cuda_backward(const HostCall* call, char* sentence) {
  return run(*call, sentence, backward_workspace, [](const Call& c, void* workspace, cudaStream_t stream) {
    return attention_backward(c, workspace, stream);
  });
}

int mh_cuda_toolkit() {
  int version = 0;
  cudaRuntimeGetVersion(&version);
  return version;
}
