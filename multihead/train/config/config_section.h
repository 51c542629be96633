// How a table of configuration keys is written: one call for each key, by the type of its field.
#pragma once

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "multihead/train/config/config_keys.h"

namespace mh::detail {

inline constexpr int64_t kMany = std::numeric_limits<int64_t>::max(), kMillion = 1000000;
inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Integers {
  int64_t low = 0, high = kMany;

  std::string text() const {
    return high == kMany ? fmt::format("an integer, at least {}", low)
                         : fmt::format("an integer from {} to {}", low, high);
  }
};

struct Numbers {
  double low = 0, high = 1;
  bool low_excluded = false, high_excluded = false;

  bool holds(double x) const {  // neither NaN nor infinity
    return (low_excluded ? x > low : x >= low) && (high_excluded ? x < high : x <= high);
  }
  std::string text() const {
    return fmt::format("a number, {} {}{}", low_excluded ? "above" : "at least", low,
                       high == kInfinity ? "" : fmt::format(" and {} {}", high_excluded ? "below" : "at most", high));
  }
};

inline constexpr Numbers kProbability{.high_excluded = true};

template <class T>
using Names = std::vector<std::pair<std::string, T>>;

// The double whose shortest text is that of the float: 0.1F is written as 0.1.
inline double shortest(float x) { return std::stod(fmt::format("{}", x)); }
inline double shortest(double x) { return x; }

inline std::optional<double> number_of(const ConfigValue& value) {
  if (const auto* whole = std::get_if<int64_t>(&value)) return static_cast<double>(*whole);
  if (const auto* number = std::get_if<double>(&value)) return *number;
  return std::nullopt;
}

// Adds the keys of one section, each a field of `Part`.
template <class Part>
class Section {
 public:
  Section(std::vector<ConfigKey>& keys, std::string name, Part TrainConfig::*part)
      : keys_(keys), name_(std::move(name)), part_(part) {}

  void integer(const char* name, int64_t Part::*field, const Integers& range, const char* doc) {
    add(name, range.text(), doc, field, [range](int64_t& place, const ConfigValue& value) {
      const auto* given = std::get_if<int64_t>(&value);
      if (given == nullptr || *given < range.low || *given > range.high) return false;
      place = *given;
      return true;
    });
  }

  template <class T>
  void number(const char* name, T Part::*field, const Numbers& range, const char* doc) {
    add(name, range.text(), doc, field, [range](T& place, const ConfigValue& value) {
      const std::optional<double> given = number_of(value);
      if (!given || !range.holds(static_cast<T>(*given))) return false;
      place = static_cast<T>(*given);
      return true;
    });
  }

  void flag(const char* name, bool Part::*field, const char* doc) {
    add(name, "true or false", doc, field, [](bool& place, const ConfigValue& value) {
      if (!std::holds_alternative<bool>(value)) return false;
      place = std::get<bool>(value);
      return true;
    });
  }

  void text(const char* name, std::string Part::*field, const char* doc) {
    add(name, "text", doc, field, [](std::string& place, const ConfigValue& value) {
      if (!std::holds_alternative<std::string>(value)) return false;
      place = std::get<std::string>(value);
      return true;
    });
  }

  // A column of a table: its number from 1, or its name.
  void column(const char* name, std::string Part::*field, const char* doc) {
    const auto part = part_;
    keys_.push_back({.section = name_,
                     .name = name,
                     .expected = "an integer, at least 1, or text",
                     .doc = doc,
                     .take =
                         [part, field](TrainConfig& config, const ConfigValue& value) {
                           if (const auto* number = std::get_if<int64_t>(&value)) {
                             if (*number < 1) return false;
                             config.*part.*field = std::to_string(*number);
                             return true;
                           }
                           const auto* text = std::get_if<std::string>(&value);
                           if (text != nullptr) config.*part.*field = *text;
                           return text != nullptr;
                         },
                     .value = [part, field](const TrainConfig& config) -> ConfigValue {
                       const std::string& held = config.*part.*field;
                       if (held.empty() || held.size() > 9 || held.find_first_not_of("0123456789") != std::string::npos)
                         return held;
                       return int64_t{std::stoll(held)};
                     },
                     .from_text = [](const std::string& text) -> ConfigValue { return text; }});
  }

  template <class T>
  void choice(const char* name, T Part::*field, const Names<T>& names, const std::string& doc) {
    std::vector<std::string> words;
    for (const auto& [word, meaning] : names) words.push_back(value_text(word));
    const auto part = part_;
    keys_.push_back({.section = name_,
                     .name = name,
                     .expected = fmt::format("one of {}", fmt::join(words, ", ")),
                     .doc = doc,
                     .take =
                         [part, field, names](TrainConfig& config, const ConfigValue& value) {
                           for (const auto& [word, meaning] : names) {
                             if (value != ConfigValue(word)) continue;
                             config.*part.*field = meaning;
                             return true;
                           }
                           return false;
                         },
                     .value = [part, field, names](const TrainConfig& config) -> ConfigValue {
                       const auto known = std::find_if(names.begin(), names.end(), [&](const auto& each) {
                         return each.second == config.*part.*field;
                       });
                       return known == names.end() ? std::string() : known->first;
                     }});
  }

 private:
  template <class T, class Take>
  void add(const char* name, std::string expected, const char* doc, T Part::*field, Take take) {
    const auto part = part_;
    keys_.push_back({.section = name_,
                     .name = name,
                     .expected = std::move(expected),
                     .doc = doc,
                     .take = [part, field, take](TrainConfig& config,
                                                 const ConfigValue& value) { return take(config.*part.*field, value); },
                     .value = [part, field](const TrainConfig& config) -> ConfigValue {
                       const T& held = config.*part.*field;
                       if constexpr (std::is_floating_point_v<T>)
                         return shortest(held);
                       else
                         return held;
                     }});
  }

  std::vector<ConfigKey>& keys_;
  std::string name_;
  Part TrainConfig::*part_;
};

}  // namespace mh::detail
