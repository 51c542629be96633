// The counting of white space in tokens and in texts.
#include "multihead/text/pipeline/margins.h"

#include <algorithm>
#include <vector>

#include "multihead/text/unicode/code_set.h"

namespace mh::detail {

Margins find_margins(std::string_view token) {
  constexpr uint32_t kSpaceOfBytes = 0x120;  // how byte-level tokens spell a space
  std::vector<bool> spaces;
  for (size_t at = 0; at < token.size();) {
    const uint32_t c = next_character(token, at);
    spaces.push_back(c == kSpaceOfBytes || is_white_space(c));
  }
  const auto left = std::find(spaces.begin(), spaces.end(), false) - spaces.begin();
  const auto right = std::find(spaces.rbegin(), spaces.rend(), false) - spaces.rbegin();
  const auto limited = [](std::ptrdiff_t count) {
    return static_cast<uint16_t>(std::min<std::ptrdiff_t>(count, 0xffff));
  };
  return {limited(left), limited(right)};
}

TextSpan without_margins(TextSpan span, Margins margins, std::string_view text) {
  for (; margins.left > 0 && span.begin < span.end; --margins.left) {
    size_t at = span.begin;
    next_character(text, at);
    span.begin = static_cast<uint32_t>(at);
  }
  size_t characters = 0;  // of the text before `end`; only compared with how many are to go
  for (uint32_t at = span.end; at > 0 && characters < margins.right; --at)
    if (!U8_IS_TRAIL(text[at - 1])) ++characters;
  if (characters < margins.right) return span;
  for (; margins.right > 0 && span.end > span.begin; --margins.right) {
    do --span.end;
    while (span.end > span.begin && U8_IS_TRAIL(text[span.end]));
  }
  return span;
}

}  // namespace mh::detail
