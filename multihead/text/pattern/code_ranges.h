// Sets of characters as sorted ranges: what the classes of a pattern are put together from.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "multihead/text/unicode/ranges.h"

namespace mh::detail {

// Sorted, apart from each other, none beyond U+10FFFF.
using CodeRanges = std::vector<CodeRange>;

CodeRanges unite(CodeRanges a, const CodeRanges& b);
CodeRanges intersect(const CodeRanges& a, const CodeRanges& b);
CodeRanges complement(const CodeRanges& a);

CodeRanges white_space_ranges();
CodeRanges word_ranges();  // \w

// \p{name}: a general category, one of its groups (L, M, N, P, S, Z, C), Han, Hiragana, Katakana, Hangul or Any.
// Nothing for another name.
std::optional<CodeRanges> property_ranges(std::string_view name);

// A set that answers in a few instructions.
class CodeTable {
 public:
  explicit CodeTable(const CodeRanges& ranges);

  bool ascii(uint8_t c) const { return ascii_[c >> 6] >> (c & 63) & 1; }  // c < 128
  bool contains(uint32_t c) const {
    const Block& block = blocks_[places_[c >> 8]];
    return block[c >> 6 & 3] >> (c & 63) & 1;
  }

 private:
  using Block = std::array<uint64_t, 4>;

  std::array<uint64_t, 2> ascii_{};
  std::vector<uint16_t> places_;  // of the block of each 256 characters
  std::vector<Block> blocks_;
};

}  // namespace mh::detail
