// The memory behind a tensor.
#pragma once

#include <cstddef>

#include "multihead/tensor/memory_cache.h"
#include "multihead/tensor/tensor.h"

namespace mh {

struct Storage {
  // Owned and uninitialised. Throws: OutOfMemory.
  explicit Storage(size_t size) : data(take_bytes(size)), bytes(size), owned(true) {}
  // The caller's.
  explicit Storage(void* theirs) : data(theirs), bytes(0), owned(false) {}
  ~Storage() {
    if (owned) give_bytes(data, bytes);
  }
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;

  void* const data;
  const size_t bytes;  // of owned memory
  const bool owned;
};

// The axes of `shape` one behind the other, the last one densest.
View dense_view(void* data, const Shape& shape, DType dtype);

}  // namespace mh
