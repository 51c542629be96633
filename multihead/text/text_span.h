// A stretch of a text, as the numbers of its first byte and of the byte behind its last.
#pragma once

#include <cstdint>

namespace mh {

struct TextSpan {
  uint32_t begin = 0, end = 0;
  friend bool operator==(TextSpan, TextSpan) = default;
};

}  // namespace mh
