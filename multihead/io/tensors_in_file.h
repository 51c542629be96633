// Tensors that lie in the bytes of a file and keep it.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "multihead/io/file_bytes.h"
#include "multihead/tensor/storage.h"
#include "multihead/tensor/tensor.h"

namespace mh::detail {

class TensorsInFile {
 public:
  explicit TensorsInFile(const FileBytes& file);
  // A view of `bytes`, which belong to the file and are the shape's; a copy where they are not aligned to the elements.
  Tensor at(std::span<std::byte> bytes, const Shape& shape, DType dtype) const;
  // The same with strides, in elements from 0 on, that lead to no element past the bytes; a copy is dense.
  Tensor at(std::span<std::byte> bytes, const Shape& shape, const std::vector<int64_t>& strides, DType dtype) const;

 private:
  std::shared_ptr<Storage> storage_;
};

// Whether each is 0 or 1: C++ knows two bools, and what a file holds may be neither.
bool holds_bools(std::span<const std::byte> bytes);

}  // namespace mh::detail
