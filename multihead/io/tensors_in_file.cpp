// Views of mapped bytes, and the memory they keep.
#include "multihead/io/tensors_in_file.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace mh::detail {

namespace {

// Memory that lives as long as somebody else's does.
struct Kept {
  explicit Kept(const FileBytes& file) : keeper(file.keeper), storage(file.bytes.data()) {}
  std::shared_ptr<void> keeper;
  Storage storage;
};

bool is_aligned(const void* data, DType dtype) {
  return reinterpret_cast<uintptr_t>(data) % static_cast<uintptr_t>(size_of(dtype)) == 0;
}

}  // namespace

TensorsInFile::TensorsInFile(const FileBytes& file) {
  const auto kept = std::make_shared<Kept>(file);
  storage_ = {kept, &kept->storage};
}

Tensor TensorsInFile::at(std::span<std::byte> bytes, const Shape& shape, DType dtype) const {
  if (is_aligned(bytes.data(), dtype)) return {storage_, dense_view(bytes.data(), shape, dtype)};
  Tensor out = empty(shape, dtype);
  std::memcpy(out.view().data, bytes.data(), bytes.size());
  return out;
}

Tensor TensorsInFile::at(std::span<std::byte> bytes, const Shape& shape, const std::vector<int64_t>& strides,
                         DType dtype) const {
  if (is_aligned(bytes.data(), dtype)) return {storage_, wrap(bytes.data(), shape, strides, dtype).view()};
  const Tensor copy = empty({static_cast<int64_t>(bytes.size()) / size_of(dtype)}, dtype);
  std::memcpy(copy.view().data, bytes.data(), bytes.size());
  return wrap(copy.view().data, shape, strides, dtype).clone();
}

bool holds_bools(std::span<const std::byte> bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return static_cast<uint8_t>(b) <= 1; });
}

}  // namespace mh::detail
