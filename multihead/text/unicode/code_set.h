// A set of characters that answers in a few instructions, and the walk over the characters of a text.
#pragma once

#include <unicode/utf8.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "multihead/text/unicode/ranges.h"

namespace mh::detail {

// One bit for each code point up to the last of the set.
class CodeSet {
 public:
  explicit CodeSet(std::span<const CodeRange> ranges) {
    if (!ranges.empty()) bits_.resize(ranges.back().last / 64 + 1);
    for (const CodeRange& range : ranges)
      for (uint32_t c = range.first; c <= range.last; ++c) bits_[c / 64] |= uint64_t{1} << c % 64;
  }

  bool contains(uint32_t c) const { return c / 64 < bits_.size() && (bits_[c / 64] >> c % 64 & 1); }

 private:
  std::vector<uint64_t> bits_;
};

// The character at `at` < text.size(), which moves past it. `text` is UTF-8.
inline uint32_t next_character(std::string_view text, size_t& at) {
  UChar32 c = 0;
  U8_NEXT_OR_FFFD(text.data(), at, text.size(), c);
  return static_cast<uint32_t>(c);
}

inline void append_character(uint32_t c, std::string& out) {
  char buffer[U8_MAX_LENGTH];
  int32_t length = 0;
  U8_APPEND_UNSAFE(buffer, length, c);
  out.append(buffer, static_cast<size_t>(length));
}

// The 25 characters that every version of Unicode since 6.3 calls white space.
bool is_white_space(uint32_t c);

// The text with U+FFFD for what is not well-formed.
std::string repaired_utf8(std::string_view text);

}  // namespace mh::detail
