// One table of keys, walked both ways.
#include "multihead/models/config_json.h"

#include <simdjson.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

namespace mh {

namespace {

namespace dom = simdjson::dom;
using Json = nlohmann::ordered_json;
using Config = TransformerConfig;

template <class T>
struct Integer {
  const char* key;
  T Config::*field;
  int64_t low, high;
};
constexpr Integer<int64_t> kSizes[] = {
    {"vocabulary", &Config::vocabulary, 1, 1 << 24},
    {"width", &Config::width, 1, 1 << 16},
    {"heads", &Config::heads, 1, 1 << 12},
    {"feed_forward", &Config::feed_forward, 1, 1 << 20},
    {"encoder_layers", &Config::encoder_layers, 0, 1024},
    {"decoder_layers", &Config::decoder_layers, 1, 1024},
    {"max_length", &Config::max_length, 2, 1 << 20},
};
constexpr Integer<int32_t> kTokens[] = {
    {"pad", &Config::pad, 0, 1 << 24}, {"begin", &Config::begin, 0, 1 << 24}, {"end", &Config::end, 0, 1 << 24}};

constexpr std::pair<const char*, NormPlace> kNorms[] = {{"pre", NormPlace::before}, {"post", NormPlace::after}};
constexpr std::pair<const char*, Middle> kMiddles[] = {{"relu", Middle::relu},
                                                       {"gelu", Middle::gelu},
                                                       {"gelu_tanh", Middle::gelu_tanh},
                                                       {"swiglu", Middle::swiglu},
                                                       {"geglu", Middle::geglu}};
constexpr std::pair<const char*, ModelPositions> kPositions[] = {{"sinusoidal", ModelPositions::sinusoidal},
                                                                 {"learned", ModelPositions::learned},
                                                                 {"rotary", ModelPositions::rotary},
                                                                 {"alibi", ModelPositions::alibi},
                                                                 {"t5", ModelPositions::t5}};

template <class Names, class T>
const char* name_of(const Names& names, T value) {
  for (const auto& [name, meaning] : names) {
    if (meaning == value) return name;
  }
  fail(ErrorKind::internal, "config_to_json: {} has no name", static_cast<int>(value));
}

// One key and its value, as read. Each `take` answers whether the key is its own.
class Entry {
 public:
  Entry(std::string_view key, dom::element value, const std::string& file) : key_(key), value_(value), file_(file) {}

  template <class T, size_t N>
  bool take(Config& config, const Integer<T> (&keys)[N]) const {
    for (const Integer<T>& known : keys) {
      if (key_ != known.key) continue;
      int64_t number = 0;
      if (value_.get(number) != simdjson::SUCCESS || number < known.low || number > known.high)
        refuse(fmt::format("an integer from {} to {}", known.low, known.high));
      config.*known.field = static_cast<T>(number);
      return true;
    }
    return false;
  }

  template <class T, size_t N>
  bool take(const char* key, T& place, const std::pair<const char*, T> (&names)[N]) const {
    if (key_ != key) return false;
    std::string_view word;
    if (value_.get(word) == simdjson::SUCCESS) {
      for (const auto& [name, meaning] : names) {
        if (word != name) continue;
        place = meaning;
        return true;
      }
    }
    std::string expected;
    for (const auto& each : names) expected += fmt::format("{}\"{}\"", expected.empty() ? "" : " or ", each.first);
    refuse(expected);
  }

  bool take_kind() const {
    std::string_view word;
    if (key_ != "kind") return false;
    if (value_.get(word) != simdjson::SUCCESS || word != "transformer") refuse("\"transformer\"");
    return true;
  }
  bool take_tied(bool& place) const {
    if (key_ != "tied") return false;
    if (value_.get(place) != simdjson::SUCCESS) refuse("true or false");
    return true;
  }
  bool take_dropout(float& place) const {
    double number = 0;
    if (key_ != "dropout") return false;
    if (value_.get(number) != simdjson::SUCCESS || !(number >= 0 && number < 1)) refuse("a number from 0 to below 1");
    place = static_cast<float>(number);
    return true;
  }

 private:
  [[noreturn]] void refuse(const std::string& expected) const {
    fail(ErrorKind::io, "{}: the model's '{}' is {}; expected {}", file_, key_, simdjson::minify(value_).substr(0, 80),
         expected);
  }

  std::string_view key_;
  dom::element value_;
  const std::string& file_;
};

}  // namespace

std::string config_to_json(const TransformerConfig& config) {
  Json out{{"kind", "transformer"}};
  for (const auto& known : kSizes) out[known.key] = config.*known.field;
  out["norm"] = name_of(kNorms, config.norm);
  out["activation"] = name_of(kMiddles, config.middle);
  out["positions"] = name_of(kPositions, config.positions);
  out["dropout"] = std::stod(fmt::format("{}", config.dropout));  // 0.1, not the 17 digits of the float
  out["tied"] = config.tied;
  for (const auto& known : kTokens) out[known.key] = config.*known.field;
  return out.dump();
}

TransformerConfig config_from_json(std::string_view json, const std::string& name) {
  dom::parser parser;
  dom::object object;
  const simdjson::error_code error = parser.parse(json.data(), json.size()).get(object);
  if (error) fail(ErrorKind::io, "{}: the model's config is no JSON object: {}", name, simdjson::error_message(error));
  TransformerConfig config;
  for (const auto& [key, value] : object) {
    const Entry entry(key, value, name);
    const bool known = entry.take_kind() || entry.take(config, kSizes) || entry.take(config, kTokens) ||
                       entry.take("norm", config.norm, kNorms) || entry.take("activation", config.middle, kMiddles) ||
                       entry.take("positions", config.positions, kPositions) || entry.take_tied(config.tied) ||
                       entry.take_dropout(config.dropout);
    if (!known)
      fail(ErrorKind::io, "{}: the model's config has the key '{}', which this version does not know", name,
           key.substr(0, 80));
  }
  for (const auto& known : kTokens) {
    if (config.*known.field >= config.vocabulary)
      fail(ErrorKind::io, "{}: the model's token '{}' is {}; expected one of its {} tokens", name, known.key,
           config.*known.field, config.vocabulary);
  }
  return config;
}

}  // namespace mh
