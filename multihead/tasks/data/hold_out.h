// Which examples are kept for validation where no file is named for it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace mh::detail {

// Of texts, those to hold out: `count`, and with them every other one that is equal to one of them. Which ones follows
// from the texts alone, not from their places. `name` and
// `what`, "pairs", stand in the sentence. Throws: invalid_argument where more than
// half would go, or nothing is left.
std::vector<bool> held_out(const std::vector<std::string_view>& texts, int64_t count, const std::string& name,
                           std::string_view what);

}  // namespace mh::detail
