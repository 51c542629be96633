// One element from one type to another.
#pragma once

#include <limits>
#include <type_traits>

#include "multihead/base/dtype.h"

namespace mh {

// Floats round once, to nearest even. To an integer a float is cut towards zero and kept within the range, NaN gives 0;
// between integers the low bits stay
// (Tensor::copy_from has seen that they are all). To bool: whether it is not 0 (NaN is not).
template <class To, class From>
To convert(From value) {
  constexpr bool kFromHalf = std::is_same_v<From, bf16> || std::is_same_v<From, f16>;
  constexpr bool kToHalf = std::is_same_v<To, bf16> || std::is_same_v<To, f16>;
  if constexpr (std::is_same_v<To, From>) {
    return value;
  } else if constexpr (kFromHalf) {
    return convert<To>(static_cast<float>(value));
  } else if constexpr (kToHalf) {
    if constexpr (std::is_same_v<From, float>) {
      return To(value);
    } else {
      return To(static_cast<double>(value));
    }
  } else if constexpr (std::is_same_v<To, bool>) {
    return value != 0;
  } else if constexpr (std::is_integral_v<To> && std::is_floating_point_v<From>) {
    if (!(value == value)) return 0;
    if (value < static_cast<From>(std::numeric_limits<To>::min())) return std::numeric_limits<To>::min();
    if (value >= static_cast<From>(std::numeric_limits<To>::max())) return std::numeric_limits<To>::max();
    return static_cast<To>(value);
  } else {
    return static_cast<To>(value);
  }
}

}  // namespace mh
