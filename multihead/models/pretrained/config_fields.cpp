// Reads keys of a config.json with their ranges checked, or writes them.
#include "multihead/models/pretrained/config_fields.h"

#include <simdjson.h>

#include <charconv>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "multihead/base/printable.h"

namespace mh {

namespace {

namespace dom = simdjson::dom;
using Json = nlohmann::ordered_json;

constexpr int64_t kMost = std::numeric_limits<int32_t>::max();

constexpr std::pair<const char*, Middle> kFileMiddles[] = {{"relu", Middle::relu},
                                                           {"gelu", Middle::gelu},
                                                           {"gelu_python", Middle::gelu},
                                                           {"gelu_new", Middle::gelu_tanh},
                                                           {"gelu_pytorch_tanh", Middle::gelu_tanh},
                                                           {"gelu_python_tanh", Middle::gelu_tanh},
                                                           {"gelu_fast", Middle::gelu_tanh},
                                                           {"gelu_accurate", Middle::gelu_tanh},
                                                           {"quick_gelu", Middle::quick_gelu},
                                                           {"silu", Middle::silu},
                                                           {"swish", Middle::silu},
                                                           {"tanh", Middle::tanh}};

// The number that a float stands for in decimal: 1e-12, not 9.999999960041972e-13.
double decimal(float value) { return std::stod(fmt::format("{}", value)); }

}  // namespace

struct ConfigFields::Document {
  std::string name, path;  // the file, and "text_config." inside of it
  bool reading = true;
  std::shared_ptr<dom::parser> parser{};
  std::optional<dom::object> read{};
  std::shared_ptr<Json> root{};
  Json* written = nullptr;
};

ConfigFields::ConfigFields(std::shared_ptr<Document> document) : document_(std::move(document)) {}
ConfigFields::ConfigFields(ConfigFields&&) noexcept = default;
ConfigFields::~ConfigFields() = default;

ConfigFields ConfigFields::reading(std::string_view json, const std::string& name) {
  auto document = std::make_shared<Document>(Document{.name = name, .path = {}});
  document->parser = std::make_shared<dom::parser>();
  dom::element root;
  dom::object fields;
  const simdjson::error_code error = document->parser->parse(json.data(), json.size()).get(root);
  if (error) fail(ErrorKind::io, "{}: not valid JSON: {}", printable_path(name), simdjson::error_message(error));
  if (root.get(fields)) fail(ErrorKind::io, "{}: not a JSON object; expected a model's config", printable_path(name));
  document->read = fields;
  return ConfigFields(document);
}

ConfigFields ConfigFields::writing() {
  auto document = std::make_shared<Document>(Document{.name = "config.json", .path = {}, .reading = false});
  document->root = std::make_shared<Json>(Json::object());
  document->written = document->root.get();
  return ConfigFields(document);
}

bool ConfigFields::is_reading() const { return document_->reading; }

namespace {

// The value of a key, unless it is missing or null.
std::optional<dom::element> found(const std::optional<dom::object>& fields, std::string_view key) {
  dom::element value;
  if (!fields || fields->at_key(key).get(value) || value.is_null()) return {};
  return value;
}

}  // namespace

bool ConfigFields::has(std::string_view key) const { return found(document_->read, key).has_value(); }

bool ConfigFields::is_text(std::string_view key) const {
  const auto value = found(document_->read, key);
  return value && value->is_string();
}

bool ConfigFields::is_list(std::string_view key) const {
  const auto value = found(document_->read, key);
  return value && value->is_array();
}

void ConfigFields::refuse(std::string_view key, const std::string& expected) const {
  const auto value = found(document_->read, key);
  fail(ErrorKind::io, "{}: {}{} is {}; expected {}", printable_path(document_->name), document_->path, key,
       value ? simdjson::minify(*value).substr(0, 80) : "missing", expected);
}

namespace {

template <class T>
void put(Json* to, std::string_view key, const T& value) {
  (*to)[std::string(key)] = value;
}

}  // namespace

void ConfigFields::count(std::string_view key, int64_t& place) {
  if (!is_reading()) return put(document_->written, key, place);
  const auto value = found(document_->read, key);
  if (!value) return;
  int64_t number = 0;
  if (value->get(number) || number < 0 || number > kMost)
    refuse(key, fmt::format("a whole number from 0 to {}", kMost));
  place = number;
}

void ConfigFields::any_number(std::string_view key, int64_t& place) {
  if (!is_reading()) return put(document_->written, key, place);
  const auto value = found(document_->read, key);
  int64_t number = 0;
  if (!value) return;
  if (value->get(number) || number < -kMost || number > kMost)
    refuse(key, fmt::format("a whole number from {} to {}", -kMost, kMost));
  place = number;
}

void ConfigFields::size(std::string_view key, int64_t& place) {
  count(key, place);
  if (is_reading() && has(key) && place < 1) refuse(key, fmt::format("a whole number from 1 to {}", kMost));
}

void ConfigFields::layers(std::string_view key, int64_t& place) {
  constexpr int64_t kMostLayers = 4096;
  size(key, place);
  if (is_reading() && place > kMostLayers) refuse(key, fmt::format("a whole number from 1 to {}", kMostLayers));
}

void ConfigFields::number(std::string_view key, float& place) {
  if (!is_reading()) return put(document_->written, key, decimal(place));
  const auto value = found(document_->read, key);
  if (!value) return;
  double number = 0;
  if (value->get(number) || !std::isfinite(static_cast<float>(number))) refuse(key, "a number");
  place = static_cast<float>(number);
}

void ConfigFields::flag(std::string_view key, bool& place) {
  if (!is_reading()) return put(document_->written, key, place);
  const auto value = found(document_->read, key);
  if (value && value->get(place)) refuse(key, "true or false");
}

void ConfigFields::text(std::string_view key, std::string& place) {
  if (!is_reading()) return put(document_->written, key, place);
  const auto value = found(document_->read, key);
  std::string_view text;
  if (!value) return;
  if (value->get(text)) refuse(key, "text");
  place = text;
}

void ConfigFields::id(std::string_view key, int32_t& place) {
  if (!is_reading()) return put(document_->written, key, place < 0 ? Json() : Json(place));
  dom::element raw;
  if (!document_->read || document_->read->at_key(key).get(raw)) return;
  int64_t number = -1;
  if (!raw.is_null() && (raw.get(number) || number < -1 || number > kMost))
    refuse(key, fmt::format("null or a token's id, a whole number from 0 to {}", kMost));
  place = static_cast<int32_t>(number);
}

void ConfigFields::ids(std::string_view key, std::vector<int32_t>& place) {
  if (!is_reading()) {
    return put(document_->written, key, place.empty() ? Json() : place.size() == 1 ? Json(place[0]) : Json(place));
  }
  dom::array list;
  const auto value = found(document_->read, key);
  if (!value || value->get(list)) {
    int32_t one = place.empty() ? -1 : place[0];
    id(key, one);
    if (has(key)) place.assign(1, one);
    return;
  }
  place.clear();
  for (const dom::element each : list) {
    int64_t number = 0;
    if (each.get(number) || number < 0 || number > kMost) refuse(key, "a token's id, or a list of them");
    place.push_back(static_cast<int32_t>(number));
  }
}

void ConfigFields::texts(std::string_view key, std::vector<std::string>& place) {
  if (!is_reading()) return put(document_->written, key, place);
  const auto value = found(document_->read, key);
  dom::array list;
  if (!value) return;
  if (value->get(list)) refuse(key, "a list of texts");
  place.clear();
  for (const dom::element each : list) {
    std::string_view text;
    if (each.get(text)) refuse(key, "a list of texts");
    place.emplace_back(text);
  }
}

void ConfigFields::numbers(std::string_view key, std::vector<int64_t>& place) {
  if (!is_reading()) return put(document_->written, key, place);
  const auto value = found(document_->read, key);
  dom::array list;
  if (!value) return;
  if (value->get(list)) refuse(key, "a list of whole numbers");
  place.clear();
  for (const dom::element each : list) {
    int64_t number = 0;
    if (each.get(number) || std::abs(number) > kMost) refuse(key, "a list of whole numbers");
    place.push_back(number);
  }
}

void ConfigFields::activation(std::string_view key, Middle& place) {
  std::string word;
  if (!is_reading()) {
    for (const auto& [name, meaning] : kFileMiddles)
      if (word.empty() && meaning == place) word = name;
    return text(key, word);
  }
  if (!has(key)) return;
  text(key, word);
  std::string known;
  for (const auto& [name, meaning] : kFileMiddles) {
    if (word == name) {
      place = meaning;
      return;
    }
    known += fmt::format("{}\"{}\"", known.empty() ? "" : ", ", name);
  }
  fail(ErrorKind::unsupported, "{}: {}{} is {}; expected one of {}", printable_path(document_->name), document_->path,
       key, printable(word), known);
}

void ConfigFields::activation(std::string_view key, Activation& place) {
  Middle middle = Middle::gelu;
  if (is_reading() && !has(key)) return;
  for (const auto& [name, meaning] : kFileMiddles)
    if (activation_of(meaning) == place) middle = meaning;
  activation(key, middle);
  place = activation_of(middle);
}

void ConfigFields::labels(std::vector<std::string>& place) {
  if (!is_reading()) {
    Json by_number = Json::object(), by_name = Json::object();
    for (size_t n = 0; n < place.size(); ++n) {
      by_number[std::to_string(n)] = place[n];
      by_name[place[n]] = n;
    }
    put(document_->written, "id2label", by_number);
    return put(document_->written, "label2id", by_name);
  }
  const auto value = found(document_->read, "id2label");
  dom::object fields;
  if (!value) {
    int64_t count = static_cast<int64_t>(place.size());
    this->size("num_labels", count);
    check(count <= 1 << 20, "{}: num_labels is {}; expected at most {}", printable_path(document_->name), count,
          1 << 20);
    place.clear();
    for (int64_t n = 0; n < count; ++n) place.push_back(fmt::format("LABEL_{}", n));
    return;
  }
  if (value->get(fields)) refuse("id2label", "an object of labels by number");
  place.assign(fields.size(), "");
  std::vector<bool> given(place.size());
  for (const auto [key, each] : fields) {
    std::string_view label;
    size_t number = place.size();
    std::from_chars(key.data(), key.data() + key.size(), number);
    if (number >= place.size() || given[number] || each.get(label))
      refuse("id2label", fmt::format("a text for each number from \"0\" to \"{}\"", place.size() - 1));
    given[number] = true;
    place[number] = label;
  }
}

ConfigFields ConfigFields::inside(std::string_view key) {
  auto document = std::make_shared<Document>(*document_);
  document->path += std::string(key) + ".";
  if (!is_reading()) {
    Json& below = (*document_->written)[std::string(key)];
    if (!below.is_object()) below = Json::object();
    document->written = &below;
    return ConfigFields(document);
  }
  const auto value = found(document_->read, key);
  document->read.reset();
  dom::object fields;
  if (value && value->get(fields)) refuse(key, "an object");
  if (value) document->read = fields;
  return ConfigFields(document);
}

void ConfigFields::require(std::string_view key, std::initializer_list<std::string_view> values) {
  if (!is_reading() || !has(key)) return;
  std::string word, known;
  text(key, word);
  for (const std::string_view each : values) {
    if (word == each) return;
    known += fmt::format("{}\"{}\"", known.empty() ? "" : " or ", each);
  }
  fail(ErrorKind::unsupported, "{}: {}{} is {}; expected {}", printable_path(document_->name), document_->path, key,
       printable(word), known);
}

void ConfigFields::require(std::string_view key, bool value) {
  bool given = value;
  flag(key, given);
  if (given != value)
    fail(ErrorKind::unsupported, "{}: {}{} is {}; expected {}", printable_path(document_->name), document_->path, key,
         given, value);
}

std::string ConfigFields::written() const { return document_->root->dump(2) + "\n"; }

std::string ConfigFields::written_over(std::string_view base, const ConfigFields& before) const {
  Json out = Json::parse(base);
  for (const auto& [key, value] : document_->root->items()) {
    const auto old = before.document_->root->find(key);
    if (old == before.document_->root->end() || *old != value) out[key] = value;
  }
  return out.dump(2) + "\n";
}

}  // namespace mh
