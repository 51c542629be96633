// Strict reading of JSON objects over simdjson's document.
#include "multihead/text/pipeline/read/json_fields.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "multihead/base/error.h"

namespace mh::detail {

namespace {

constexpr size_t kQuoted = 60;

template <class T>
T typed(const JsonElement& element, const std::string& where, std::string_view name, std::string_view expected) {
  T value{};
  check(element.get(value) == simdjson::SUCCESS, "{}: '{}' is of the wrong type; expected {}", where, name, expected);
  return value;
}

}  // namespace

std::string in_quotes(std::string_view text) {
  const std::string shown = text.size() <= kQuoted ? std::string(text) : std::string(text.substr(0, kQuoted)) + "...";
  return nlohmann::json(shown).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

JsonFields::JsonFields(const JsonElement& element, std::string where, std::initializer_list<std::string_view> known)
    : where_(std::move(where)) {
  simdjson::dom::object object;
  check(element.get(object) == simdjson::SUCCESS, "{}: this is no JSON object; expected one", where_);
  for (const auto field : object) {
    const std::string_view name = field.key;
    check(std::find(known.begin(), known.end(), name) != known.end(), "{}: the field {} is unknown; expected {}",
          where_, in_quotes(name), fmt::join(known, ", "));
    const bool seen =
        std::any_of(fields_.begin(), fields_.end(), [&](const auto& other) { return other.first == name; });
    check(!seen, "{}: the field {} stands there twice", where_, in_quotes(name));
    fields_.emplace_back(name, field.value);
  }
}

std::optional<JsonElement> JsonFields::find(std::string_view name) const {
  for (const auto& [own, value] : fields_)
    if (own == name) return value.is_null() ? std::nullopt : std::optional(value);
  return std::nullopt;
}

JsonElement JsonFields::element(std::string_view name) const {
  const std::optional<JsonElement> found = find(name);
  check(found.has_value(), "{}: '{}' is missing", where_, name);
  return *found;
}

simdjson::dom::array JsonFields::array(std::string_view name) const {
  return typed<simdjson::dom::array>(element(name), where_, name, "an array");
}

simdjson::dom::object JsonFields::object(std::string_view name) const {
  return typed<simdjson::dom::object>(element(name), where_, name, "an object");
}

std::string_view JsonFields::string(std::string_view name) const {
  return typed<std::string_view>(element(name), where_, name, "a string");
}

int64_t JsonFields::integer(std::string_view name) const {
  return typed<int64_t>(element(name), where_, name, "a whole number");
}

bool JsonFields::flag(std::string_view name, bool missing) const {
  return find(name) ? typed<bool>(element(name), where_, name, "true or false") : missing;
}

std::string_view json_type(const JsonElement& element, const std::string& where) {
  std::string_view type;
  check(element["type"].get(type) == simdjson::SUCCESS, "{}: this has no 'type'; expected an object that names one",
        where);
  return type;
}

}  // namespace mh::detail
