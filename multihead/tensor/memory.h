// What tensors ask of a device's memory: one table for each kind of device.
#pragma once

#include <cstddef>

#include "multihead/base/device.h"
#include "multihead/base/view.h"

namespace mh {

struct Memory {
  // Uninitialised bytes, 64-byte aligned; never null. Throws: OutOfMemory.
  void* (*take)(size_t bytes, Queue& queue) = nullptr;
  void (*give)(void* data, size_t bytes, Queue& queue) = nullptr;
  // Bytes one behind the other, within the device or between it and the CPU.
  void (*copy)(void* to, const void* from, size_t bytes, Queue& queue) = nullptr;
  // Returns when everything given to the queue is done.
  void (*wait)(Queue& queue) = nullptr;
  // Every element, as Tensor::copy_from: two views of one shape, of any strides and types, that share no element.
  void (*convert)(const View& to, const View& from, Queue& queue) = nullptr;
  // Every element of a dense view, converted from a double.
  void (*fill)(const View& to, double value, Queue& queue) = nullptr;
};

// Throws: unsupported where no table has been given.
const Memory& memory_of(Device device);
// Takes a table into use for every device of a kind other than the CPU; the table must live on. Null: none any more.
void use_memory(Device::Kind kind, const Memory* memory);

}  // namespace mh
