// The memory behind a tensor.
#pragma once

#include <cstddef>

#include "multihead/base/memory.h"
#include "multihead/tensor/tensor.h"

namespace mh {

struct Storage {
  // Owned and uninitialised. Throws: std::bad_alloc.
  explicit Storage(size_t bytes) : data(allocate_bytes(bytes)), owned(true) {}
  // The caller's.
  explicit Storage(void* theirs) : data(theirs), owned(false) {}
  ~Storage() {
    if (owned) release_bytes(data);
  }
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;

  void* const data;
  const bool owned;
};

// The axes of `shape` one behind the other, the last one densest.
View dense_view(void* data, const Shape& shape, DType dtype);

}  // namespace mh
