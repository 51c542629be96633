// Calls from a program that does not know CUDA: small arrays come to the device, memory is taken in the order of the stream.
#include <cstdio>
#include <cstring>
#include <vector>

#include "multihead/kernels/cuda/entry.h"
#include "multihead/kernels/cuda/host_call.h"
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

// Arrays of the host, packed into one buffer that is copied to the device at once.
class Staging {
 public:
  template <class T>
  void read(const T*& pointer, int64_t count) {
    if (!pointer || !on_host(pointer)) return;
    places_.push_back({const_cast<const void**>(reinterpret_cast<const void* const*>(&pointer)), add(pointer, count * static_cast<int64_t>(sizeof(T)))});
  }
  void read(Array& array, const int64_t (&size)[4]) {
    if (!array || !on_host(array.data)) return;
    int64_t last = 0;
    for (int axis = 0; axis < 4; ++axis) last += array.stride[axis] * (size[axis] - 1);
    places_.push_back({const_cast<const void**>(reinterpret_cast<void**>(&array.data)), add(array.data, (last + 1) * bytes_of(array.type))});
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
    return cudaMemcpyAsync(to, buffer_.data(), buffer_.size(), cudaMemcpyHostToDevice, stream);
  }
  cudaError_t give_back(cudaStream_t stream) {
    for (const Result& result : results_) {
      const cudaError_t error = cudaMemcpyAsync(result.home, *result.pointer, result.count * 4, cudaMemcpyDeviceToHost, stream);
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
    std::snprintf(sentence, kLongestSentence, "the GPU has no %.1f MiB left for this call; %.1f of %.1f MiB are free", wanted / 1048576.0,
                  left / 1048576.0, all / 1048576.0);
  else
    std::snprintf(sentence, kLongestSentence, "the GPU fails: %s", cudaGetErrorString(error));
  return 1;
}

template <class Run>
int run(const HostCall& given, char* sentence, int64_t (*workspace)(const Call&), Run&& kernels) {
  const OnDevice device(given.device);
  if (device.error != cudaSuccess) return say(sentence, device.error, 0);
  const auto stream = static_cast<cudaStream_t>(given.stream);
  cudaStreamCaptureStatus capturing = cudaStreamCaptureStatusNone;
  if (cudaStreamIsCapturing(stream, &capturing) == cudaSuccess && capturing != cudaStreamCaptureStatusNone) {
    std::snprintf(sentence, kLongestSentence, "the call reads memory of the host; expected a stream that no CUDA graph is captured from");
    return 1;
  }
  Call call = given.call;
  call.spans = given.spans;
  Staging staging;
  stage(staging, call);
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
  return run(*call, sentence, forward_workspace, [](const Call& c, void* workspace, cudaStream_t stream) { return attention_forward(c, workspace, stream); });
}

int mh_cuda_backward(const HostCall* call, char* sentence) {
  return run(*call, sentence, backward_workspace, [](const Call& c, void* workspace, cudaStream_t stream) { return attention_backward(c, workspace, stream); });
}

void mh_cuda_facts(GpuFacts* facts) {
  cudaDriverGetVersion(&facts->driver);
  cudaRuntimeGetVersion(&facts->toolkit);
  cudaError_t error = cudaGetDeviceCount(&facts->count);
  cudaDeviceProp properties;
  if (error == cudaSuccess && facts->count > 0) error = cudaGetDeviceProperties(&properties, 0);
  if (error != cudaSuccess || facts->count == 0) {
    facts->count = 0;
    std::snprintf(facts->reason, sizeof facts->reason, "%s", error == cudaSuccess ? "no CUDA device" : cudaGetErrorString(error));
    cudaGetLastError();
    return;
  }
  std::snprintf(facts->name, sizeof facts->name, "%s", properties.name);
  facts->major = properties.major, facts->minor = properties.minor;
  facts->memory = static_cast<int64_t>(properties.totalGlobalMem);
}
