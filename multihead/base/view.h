// Where an array lies: address, type, sizes and strides. Owns nothing; what kernels see of a tensor.
#pragma once

#include <array>
#include <cstdint>

#include "multihead/base/dtype.h"

namespace mh {

inline constexpr int kMaxRank = 6;

// Sizes and strides count elements; a stride of 0 repeats one element along its axis (broadcast).
// Axes at and past `rank` have size 1 and stride 0.
struct View {
  void* data = nullptr;
  DType dtype = DType::f32;
  int rank = 0;
  std::array<int64_t, kMaxRank> size{1, 1, 1, 1, 1, 1};
  std::array<int64_t, kMaxRank> stride{};

  // Forced inline: an instruction set's translation unit must leave no copy of these for the linker to pick.
  [[gnu::always_inline]] explicit operator bool() const { return data != nullptr; }

  template <class T>
  [[gnu::always_inline]] T* as() const {
    return static_cast<T*>(data);
  }

  // The address of element (i, j, …); missing trailing indices are 0.
  template <class T, class... Index>
  [[gnu::always_inline]] T* at(Index... index) const {
    int64_t offset = 0;
    int axis = 0;
    ((offset += static_cast<int64_t>(index) * stride[axis++]), ...);
    return static_cast<T*>(data) + offset;
  }
};

}  // namespace mh
