// Large numbers as people read them.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>

namespace mh::cli {

// "1,234,567"
inline std::string grouped(int64_t number) {
  std::string digits = fmt::format("{}", number);
  const int64_t first = number < 0 ? 1 : 0;
  for (int64_t at = static_cast<int64_t>(digits.size()) - 3; at > first; at -= 3)
    digits.insert(static_cast<size_t>(at), 1, ',');
  return digits;
}

}  // namespace mh::cli
