// Each a function of the text that was typed; CLI11 puts the flag's name before the sentence.
#include "cli/values.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <optional>

namespace mh::cli {
namespace {

template <class Number>
std::optional<Number> read(const std::string& text) {
  Number out{};
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, out);
  return error == std::errc() && stop == end ? std::optional(out) : std::nullopt;
}

template <class Number>
CLI::Validator within(Number low, Number high, std::string expected) {
  const auto sentence = [low, high, expected = std::move(expected)](const std::string& text) {
    const std::optional<Number> value = read<Number>(text);
    return value && *value >= low && *value <= high ? ""
                                                    : fmt::format("'{}' does not fit; expected {}", text, expected);
  };
  return CLI::Validator(sentence, "");
}

}  // namespace

std::optional<double> read_number(const std::string& text) { return read<double>(text); }

CLI::Validator whole_number(int64_t low, int64_t high) {
  const bool open = high == std::numeric_limits<int64_t>::max();
  return within(
      low, high,
      open ? fmt::format("a whole number, at least {}", low) : fmt::format("a whole number from {} to {}", low, high));
}

CLI::Validator number(double low, double high) {
  const bool open = low == std::numeric_limits<double>::lowest() && high == std::numeric_limits<double>::max();
  return within(low, high, open ? "a number" : fmt::format("a number from {} to {}", low, high));
}

CLI::Validator one_of(const std::vector<std::string>& words) {
  const auto sentence = [words](const std::string& text) {
    return std::find(words.begin(), words.end(), text) != words.end()
               ? ""
               : fmt::format("'{}' does not fit; expected one of {}", text, fmt::join(words, ", "));
  };
  return CLI::Validator(sentence, "");
}

}  // namespace mh::cli
