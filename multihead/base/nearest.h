// The name that was probably meant.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mh {

// The candidate that takes the fewest edits to reach, where that is near enough to be what was meant; the first of
// equals. A candidate that begins with a word of three letters or more is one edit away.
std::optional<std::string> nearest(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace mh
