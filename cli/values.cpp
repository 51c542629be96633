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
std::optional<Number> parsed(const std::string& text) {
  Number out{};
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, out);
  return error == std::errc() && stop == end ? std::optional(out) : std::nullopt;
}

// `expected` begins the sentence, `limits` ends it and stands in the help.
template <class Number, class Fits>
CLI::Validator within(const char* expected, const std::string& limits, Fits fits) {
  const auto sentence = [=](const std::string& text) {
    const std::optional<Number> value = parsed<Number>(text);
    return value && fits(*value) ? "" : fmt::format("'{}' does not fit; expected {}{}", text, expected, limits);
  };
  return CLI::Validator(sentence, limits);
}

}  // namespace

std::optional<double> read_number(const std::string& text) { return parsed<double>(text); }

CLI::Validator whole_number(int64_t low, int64_t high) {
  const bool open = high == std::numeric_limits<int64_t>::max();
  return within<int64_t>(open ? "a whole number, " : "a whole number from ",
                         open ? fmt::format("at least {}", low) : fmt::format("{} to {}", low, high),
                         [low, high](int64_t value) { return value >= low && value <= high; });
}

CLI::Validator number(double low, double high) {
  return within<double>("a number from ", fmt::format("{} to {}", low, high),
                        [low, high](double value) { return value >= low && value <= high; });
}

CLI::Validator number_above(double low, double high) {
  return within<double>("a number ", fmt::format("above {}, at most {}", low, high),
                        [low, high](double value) { return value > low && value <= high; });
}

CLI::Validator one_of(const std::vector<std::string>& words) {
  const auto sentence = [words](const std::string& text) {
    return std::find(words.begin(), words.end(), text) != words.end()
               ? ""
               : fmt::format("'{}' does not fit; expected one of {}", text, fmt::join(words, ", "));
  };
  return CLI::Validator(sentence, fmt::format("{}", fmt::join(words, ", ")));
}

}  // namespace mh::cli
