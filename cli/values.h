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

// The rungs of every machine, for --rung.
inline const std::vector<std::string> kRungs = {"baseline", "avx2", "avx512", "avx512_bf16", "amx", "neon"};

// All of `text` as a number; nothing where it is none.
std::optional<double> read_number(const std::string& text);

// Each validator's description is its limits, for the help: "1 to 1024", "f32, bf16".

// A whole number from `low` to `high`.
CLI::Validator whole_number(int64_t low, int64_t high = std::numeric_limits<int64_t>::max());
// Any finite number from `low` to `high`.
CLI::Validator number(double low, double high);
// Above `low`, at most `high`.
CLI::Validator number_above(double low, double high);
CLI::Validator one_of(const std::vector<std::string>& words);

}  // namespace mh::cli
