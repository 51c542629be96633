// What a flag's value may be, refused in our own words.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class Validator;
}

namespace mh::cli {

// All of `text` as a number; nothing where it is none.
std::optional<double> read_number(const std::string& text);

// A whole number from `low` to `high`.
CLI::Validator whole_number(int64_t low, int64_t high = std::numeric_limits<int64_t>::max());
// Any finite number from `low` to `high`.
CLI::Validator number(double low = std::numeric_limits<double>::lowest(),
                      double high = std::numeric_limits<double>::max());
CLI::Validator one_of(const std::vector<std::string>& words);

}  // namespace mh::cli
