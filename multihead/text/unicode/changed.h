// A character of a text that a step has changed, and which of the old characters it stands for.
#pragma once

#include <cstdint>

namespace mh::detail {

// `change`: 0 for the next old character, -n for the next one and the n behind it, 1 for none: then it shares the place
// of the one before it.
struct Changed {
  uint32_t character;
  int32_t change = 0;
};

}  // namespace mh::detail
