// The fields of a JSON object from a file nobody vouches for: known names, each at most once, of the type expected.
#pragma once

#include <simdjson.h>

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mh::detail {

// For messages: in quotes, on one line, cut where it is long.
std::string in_quotes(std::string_view text);

using JsonElement = simdjson::dom::element;

// Every reader throws a sentence that begins with `where`: "tokenizer 'a.json': model".
class JsonFields {
 public:
  // Throws: invalid_argument where `element` is not an object, has a field twice, or one that is not among `known`.
  JsonFields(const JsonElement& element, std::string where, std::initializer_list<std::string_view> known);

  // Nothing where the field is missing or null.
  std::optional<JsonElement> find(std::string_view name) const;

  // Throw: invalid_argument where the field is missing, null or of another type.
  JsonElement element(std::string_view name) const;
  simdjson::dom::array array(std::string_view name) const;
  simdjson::dom::object object(std::string_view name) const;
  std::string_view string(std::string_view name) const;
  int64_t integer(std::string_view name) const;
  // `missing` where the field is missing or null.
  bool flag(std::string_view name, bool missing) const;

  const std::string& where() const { return where_; }

 private:
  std::string where_;
  std::vector<std::pair<std::string_view, JsonElement>> fields_;
};

// The field "type" of an object whose other fields are not known yet. Throws: as JsonFields.
std::string_view json_type(const JsonElement& element, const std::string& where);

}  // namespace mh::detail
