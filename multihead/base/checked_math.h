// Arithmetic on sizes that notices when 63 bits do not suffice.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "multihead/base/error.h"

namespace mh {

constexpr std::optional<int64_t> checked_add(int64_t a, int64_t b) {
  int64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) return std::nullopt;
  return sum;
}

constexpr std::optional<int64_t> checked_multiply(int64_t a, int64_t b) {
  int64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) return std::nullopt;
  return product;
}

// Throws: invalid_argument, naming `op` and the two numbers, where the result does not fit.
inline int64_t add_sizes(std::string_view op, int64_t a, int64_t b) {
  const std::optional<int64_t> sum = checked_add(a, b);
  check(sum.has_value(), "{}: the size {} + {} overflows; expected less than 2^63", op, a, b);
  return *sum;
}

inline int64_t multiply_sizes(std::string_view op, int64_t a, int64_t b) {
  const std::optional<int64_t> product = checked_multiply(a, b);
  check(product.has_value(), "{}: the size {} x {} overflows; expected less than 2^63", op, a, b);
  return *product;
}

}  // namespace mh
