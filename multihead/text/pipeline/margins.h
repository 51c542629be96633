// White space at the ends of tokens, and offsets without it.
#pragma once

#include <cstdint>
#include <string_view>

#include "multihead/text/text_span.h"

namespace mh::detail {

// How many characters of a token are white space, at its beginning and at its end: no more than 65,535.
struct Margins {
  uint16_t left = 0, right = 0;
};

Margins find_margins(std::string_view token);

// Takes them out of the token's place in `text`, a character there for each of the token's.
TextSpan without_margins(TextSpan span, Margins margins, std::string_view text);

}  // namespace mh::detail
