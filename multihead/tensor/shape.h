// The sizes of a tensor.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "multihead/base/view.h"

namespace mh {

// Sizes along each axis, at most kMaxRank of them.
class Shape {
 public:
  Shape() = default;
  Shape(std::initializer_list<int64_t> sizes);
  explicit Shape(const std::vector<int64_t>& sizes);
  static Shape of(const View& view);

  int rank() const { return rank_; }
  int64_t operator[](int axis) const { return sizes_[axis]; }
  int64_t& operator[](int axis) { return sizes_[axis]; }
  // Product of the sizes. Throws: invalid_argument where it does not fit 63 bits.
  int64_t count() const;
  bool operator==(const Shape& other) const;

 private:
  int rank_ = 0;
  std::array<int64_t, kMaxRank> sizes_{};
};

std::string to_string(const Shape& shape);  // "[2, 3]"

}  // namespace mh

// Hand a sentence the shape, not its text: then the text is made only where the sentence is.
template <>
struct fmt::formatter<mh::Shape> : fmt::formatter<std::string_view> {
  auto format(const mh::Shape& shape, format_context& context) const {
    return fmt::formatter<std::string_view>::format(mh::to_string(shape), context);
  }
};
