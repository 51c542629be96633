// White space, and text made whole.
#include "multihead/text/unicode/code_set.h"

namespace mh::detail {

bool is_white_space(uint32_t c) {
  if (c < 0x80) return c == ' ' || (c >= 0x9 && c <= 0xd);
  return c == 0x85 || c == 0xa0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 ||
         c == 0x202f || c == 0x205f || c == 0x3000;
}

std::string repaired_utf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) append_character(next_character(text, at), out);
  return out;
}

}  // namespace mh::detail
