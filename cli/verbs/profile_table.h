// The table of a profile.
#pragma once

#include <cstdint>
#include <vector>

#include "multihead/ops/profile.h"

namespace mh::cli {

// Prints the kernels of `steps` steps that took `seconds` together, most time first, each with its share and its rate.
void print_profile(const std::vector<ProfileRow>& rows, int64_t steps, double seconds);

}  // namespace mh::cli
