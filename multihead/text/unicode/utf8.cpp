// The check for UTF-8: at vector speed for what is whole, step by step to the fault for what is not.
#include "multihead/text/unicode/utf8.h"

#include <simdjson.h>
#include <unicode/utf8.h>

namespace mh {

std::optional<size_t> utf8_error(std::string_view text) {
  if (simdjson::validate_utf8(text)) return std::nullopt;
  size_t at = 0;
  while (at < text.size()) {
    const size_t start = at;
    UChar32 c = 0;
    U8_NEXT(text.data(), at, text.size(), c);
    if (c < 0) return start;
  }
  return std::nullopt;
}

std::string whole_utf8(std::string_view text) {
  if (simdjson::validate_utf8(text)) return std::string(text);
  std::string out;
  size_t at = 0;
  while (at < text.size()) {
    const size_t start = at;
    UChar32 c = 0;
    U8_NEXT(text.data(), at, text.size(), c);
    if (c >= 0) out += text.substr(start, at - start);
  }
  return out;
}

}  // namespace mh
