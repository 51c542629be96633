// How many pages keys fill.
#pragma once

#include <cstdint>

namespace mh::detail {

inline int64_t pages_for(int64_t keys, int64_t page) { return keys / page + (keys % page != 0); }

}  // namespace mh::detail
