// The table of configuration keys: where each lives, what it may hold, what it means.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "multihead/train/config/config.h"

namespace mh::detail {

using ConfigValue = std::variant<bool, int64_t, double, std::string>;

struct ConfigKey {
  std::string section, name;
  std::string expected;  // "an integer from 1 to 8"
  std::string doc;       // one sentence

  // Puts the value in its place; false, and nothing changed, where it has not the type or is outside the range.
  std::function<bool(TrainConfig&, const ConfigValue&)> take;
  // Of the type that `take` wants.
  std::function<ConfigValue(const TrainConfig&)> value;
  // Of a key with values of several types: what a text from the command line is. Empty: what the type of `value` says.
  std::function<ConfigValue(const std::string&)> from_text{};

  std::string path() const { return section + "." + name; }
};

// In the order in which files and pages show them, section by section.
const std::vector<ConfigKey>& config_keys();

// The keys of [data], in config_keys_data.cpp.
void add_data(std::vector<ConfigKey>& keys);

// As TOML writes it; of text, control characters and quotes are escaped.
std::string value_text(const ConfigValue& value);

}  // namespace mh::detail
