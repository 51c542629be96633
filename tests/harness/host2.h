// A second device on this machine: its memory may be touched by its own kernels and copies alone. Whatever else reads
// or writes it ends the process.
#pragma once

#include "multihead/base/device.h"

namespace mh::harness {

inline constexpr Device kHost2{Device::Kind::host2};

// Brings the device, with the kernels of the rung in use, for the rest of the process.
void bring_host2();

// Calls of its kernels since then.
int64_t host2_calls();

}  // namespace mh::harness
