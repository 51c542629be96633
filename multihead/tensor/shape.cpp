// Shapes: their sizes, product and text.
#include <algorithm>

#include "multihead/base/checked_math.h"
#include "multihead/tensor/tensor.h"

namespace mh {

namespace {

std::string text(const int64_t* begin, const int64_t* end) { return fmt::format("[{}]", fmt::join(begin, end, ", ")); }

void check_rank(const int64_t* begin, const int64_t* end) {
  if (end - begin <= kMaxRank) return;
  fail(ErrorKind::invalid_argument, "Shape: {} axes; expected at most {}; the sizes are {}", end - begin, kMaxRank,
       text(begin, end));
}

}  // namespace

Shape::Shape(std::initializer_list<int64_t> sizes) {
  check_rank(sizes.begin(), sizes.end());
  rank_ = static_cast<int>(sizes.size());
  std::copy(sizes.begin(), sizes.end(), sizes_.begin());
}

Shape::Shape(const std::vector<int64_t>& sizes) {
  check_rank(sizes.data(), sizes.data() + sizes.size());
  rank_ = static_cast<int>(sizes.size());
  std::copy(sizes.begin(), sizes.end(), sizes_.begin());
}

Shape Shape::of(const View& view) {
  Shape shape;
  shape.rank_ = view.rank;
  std::copy_n(view.size.begin(), view.rank, shape.sizes_.begin());
  return shape;
}

int64_t Shape::count() const {
  const auto end = sizes_.begin() + rank_;
  if (std::find(sizes_.begin(), end, 0) != end) return 0;
  int64_t product = 1;
  for (auto size = sizes_.begin(); size != end; ++size) {
    const std::optional<int64_t> next = checked_multiply(product, *size);
    check(next.has_value(), "Shape: the number of elements overflows; expected less than 2^63; the shape is {}", *this);
    product = *next;
  }
  return product;
}

bool Shape::operator==(const Shape& other) const {
  return rank_ == other.rank_ && std::equal(sizes_.begin(), sizes_.begin() + rank_, other.sizes_.begin());
}

std::string to_string(const Shape& shape) {
  std::vector<int64_t> sizes;
  for (int axis = 0; axis < shape.rank(); ++axis) sizes.push_back(shape[axis]);
  return text(sizes.data(), sizes.data() + sizes.size());
}

}  // namespace mh
