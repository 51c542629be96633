// Text on its way through the steps, with the place in the original that each of its bytes came from.
#pragma once

#include <unicode/utf8.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "multihead/text/text_span.h"
#include "multihead/text/unicode/changed.h"

namespace mh::detail {

using Origin = TextSpan;  // of the original

// A stretch of text. While a step left every byte where it was, no place is stored.
struct Aligned {
  std::string text;               // UTF-8
  std::vector<Origin> origins{};  // of each byte, that of its character; empty while byte i is byte `begin` + i
  uint32_t begin = 0;             // where the stretch begins in the original

  bool in_place() const { return origins.empty(); }
};

// The origin of the character that byte `at` of `text` belongs to, where byte i is byte `begin` + i of the original.
inline Origin place_of(std::string_view text, size_t at, uint32_t begin) {
  size_t first = at, last = at + 1;
  while (first > 0 && U8_IS_TRAIL(text[first])) --first;
  while (last < text.size() && U8_IS_TRAIL(text[last])) ++last;
  return {begin + static_cast<uint32_t>(first), begin + static_cast<uint32_t>(last)};
}

inline Origin origin_of(const Aligned& from, size_t at) {
  return from.in_place() ? place_of(from.text, at, from.begin) : from.origins[at];
}

// Makes the places explicit.
void store_origins(Aligned& text);

// Puts `characters` in the place of the whole text, of which the first `dropped` characters vanish.
void set_characters(Aligned& text, const std::vector<Changed>& characters, size_t dropped = 0);

// A match in a text and what it becomes.
struct Match {
  size_t begin, end;
};

// Puts `with` in the place of each match; it shares the place of the match's last character.
void replace_matches(Aligned& text, const std::vector<Match>& matches, std::string_view with);

// Puts `what` before a text that is not empty; it shares the place of the first character.
void prepend(Aligned& text, std::string_view what);

}  // namespace mh::detail
