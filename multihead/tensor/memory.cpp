// The tables of memory, and the CPU's.
#include "multihead/tensor/memory.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstring>

#include "multihead/base/error.h"
#include "multihead/tensor/convert.h"
#include "multihead/tensor/copy.h"
#include "multihead/tensor/memory_cache.h"

namespace mh {

namespace {

void fill_cpu(const View& to, double value, Queue&) {
  int64_t count = 1;
  for (int axis = 0; axis < to.rank; ++axis) count *= to.size[axis];
  if (value == 0 && !std::signbit(value)) {
    std::memset(to.data, 0, static_cast<size_t>(count * size_of(to.dtype)));
    return;
  }
  visit_any(to.dtype, [&]<class T>() { std::fill_n(to.as<T>(), count, mh::convert<T>(value)); });
}

constexpr Memory kCpuMemory{
    .take = [](size_t bytes, Queue&) { return take_bytes(bytes); },
    .give = [](void* data, size_t bytes, Queue&) { give_bytes(data, bytes); },
    .copy = [](void* to, const void* from, size_t bytes, Queue&) { std::memcpy(to, from, bytes); },
    .wait = [](Queue&) {},
    .convert = [](const View& to, const View& from, Queue&) { copy_elements(to, from); },
    .fill = fill_cpu,
};

std::array<std::atomic<const Memory*>, kDeviceKinds> given{&kCpuMemory};

}  // namespace

const Memory& memory_of(Device device) {
  const Memory* memory = given[static_cast<size_t>(device.kind)].load(std::memory_order_acquire);
  if (memory == nullptr)
    fail(ErrorKind::unsupported, "memory: {} has none in this program; expected a device with a back end",
         name(device));
  return *memory;
}

void use_memory(Device::Kind kind, const Memory* memory) {
  check(kind != Device::Kind::cpu, "memory: the CPU's is the library's own; expected another device");
  given[static_cast<size_t>(kind)] = memory;
}

}  // namespace mh
