// Names of devices, and one queue for each thread and device.
#include "multihead/base/device.h"

#include <array>
#include <map>
#include <string_view>

namespace mh {

std::string name(Device device) {
  constexpr std::array<std::string_view, kDeviceKinds> kNames{"cpu", "cuda", "host2"};
  const std::string kind(kNames[static_cast<size_t>(device.kind)]);
  return device.is_cpu() ? kind : kind + ":" + std::to_string(device.index);
}

Queue& queue_of(Device device) {
  static Queue cpu;  // nobody writes to it
  if (device.is_cpu()) return cpu;
  thread_local std::map<int, Queue> queues;
  const int key = static_cast<int>(device.kind) << 8 | static_cast<uint8_t>(device.index);
  return queues.try_emplace(key, Queue{device}).first->second;
}

}  // namespace mh
