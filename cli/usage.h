// What was typed wrong, said in one sentence with the nearest name that would have been right.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
}

namespace mh::cli {

// The candidate that takes the fewest edits to reach, where that is near enough to be what was meant.
std::optional<std::string> nearest(std::string_view word, const std::vector<std::string>& candidates);

// The sentence about the first verb or flag among `words` (the command line without the program) that `app` does not
// know; nothing where it knows all of them.
std::optional<std::string> unknown_word(const CLI::App& app, const std::vector<std::string>& words);

}  // namespace mh::cli
