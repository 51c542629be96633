// Which table of kernels a device runs.
#include <array>
#include <atomic>

#include "multihead/base/error.h"
#include "multihead/kernels/cpu/dispatch.h"
#include "multihead/kernels/table.h"

namespace mh::kernels {

namespace {

std::array<std::atomic<const Table*>, kDeviceKinds> given{};

}  // namespace

void missing(std::string_view name) { fail(ErrorKind::unsupported, "{}: this device has no such kernel", name); }

const Table& kernels_of(Device device) {
  if (device.is_cpu()) return cpu();
  const Table* table = given[static_cast<size_t>(device.kind)].load(std::memory_order_acquire);
  if (table == nullptr)
    fail(ErrorKind::unsupported, "kernels: {} has none in this program; expected a device with a back end",
         name(device));
  return *table;
}

void use_table(Device::Kind kind, const Table* table) {
  check(kind != Device::Kind::cpu, "kernels: the CPU's table is chosen by its rungs; expected another device");
  given[static_cast<size_t>(kind)] = table;
}

}  // namespace mh::kernels
