// Where a tensor's memory lies, and the queue its kernels run on.
#pragma once

#include <cstdint>
#include <string>

namespace mh {

struct Device {
  // host2: memory of this machine that the CPU's code may not touch. The tests bring it, its memory and its kernels:
  // what works there leaves no other device's memory to chance.
  enum class Kind : uint8_t { cpu, cuda, host2 };

  Kind kind = Kind::cpu;
  int8_t index = 0;

  constexpr bool is_cpu() const { return kind == Kind::cpu; }
  bool operator==(const Device&) const = default;
};

inline constexpr int kDeviceKinds = 3;

// "cpu"; others with their number: "cuda:0".
std::string name(Device device);

// Kernels given to one queue run one after another. The CPU's run before the call returns.
struct Queue {
  Device device{};
  void* native = nullptr;  // the back end's own: a cudaStream_t; null: its default
};

// The queue of the calling thread on a device.
Queue& queue_of(Device device);

}  // namespace mh
