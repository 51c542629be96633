// The memory behind a tensor.
#pragma once

#include <cstddef>

#include "multihead/tensor/memory.h"
#include "multihead/tensor/tensor.h"

namespace mh {

struct Storage {
  // Owned and uninitialised. Throws: OutOfMemory.
  explicit Storage(size_t size, Device on = {})
      : device(on), data(memory_of(on).take(size, queue_of(on))), bytes(size), owned(true) {}
  // The caller's, of the CPU.
  explicit Storage(void* theirs) : data(theirs), bytes(0), owned(false) {}
  ~Storage() {
    if (owned) memory_of(device).give(data, bytes, queue_of(device));
  }
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;

  const Device device{};
  void* const data;
  const size_t bytes;  // of owned memory
  const bool owned;
};

// The axes of `shape` one behind the other, the last one densest.
View dense_view(void* data, const Shape& shape, DType dtype);

}  // namespace mh
