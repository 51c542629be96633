// Bytes of a file read in order, little-endian, never past their end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <type_traits>

namespace mh::detail {

template <class T, class Byte>
std::optional<T> little_endian_at(std::span<Byte> bytes, uint64_t at) {
  static_assert(std::is_trivially_copyable_v<T>);
  if (at > bytes.size() || bytes.size() - at < sizeof(T)) return {};
  T value{};
  std::memcpy(&value, bytes.data() + at, sizeof(T));
  return value;
}

}  // namespace mh::detail
