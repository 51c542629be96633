// Shared parts of the reading of tokenizer.json.
#include "multihead/text/pipeline/read/read_parts.h"

#include "multihead/base/error.h"
#include "multihead/text/unicode/code_set.h"

namespace mh::detail {

void refuse_part(const std::string& where, std::string_view type, std::string_view expected) {
  fail(ErrorKind::unsupported, "{}: {} is not supported; expected {}", where, in_quotes(type), expected);
}

std::string read_character(const JsonFields& fields, std::string_view name) {
  const std::string_view text = fields.string(name);
  size_t end = 0;
  if (!text.empty()) next_character(text, end);
  check(end > 0 && end == text.size(), "{}: '{}' is {}; expected one character", fields.where(), name, in_quotes(text));
  return std::string(text);
}

std::string replace_all(std::string_view text, std::string_view what, std::string_view with) {
  std::string out;
  size_t from = 0;
  for (size_t at = text.find(what); at != std::string_view::npos; at = text.find(what, from)) {
    out.append(text, from, at - from).append(with);
    from = at + what.size();
  }
  return out.append(text, from);
}

}  // namespace mh::detail
