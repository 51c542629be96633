// Where a text is cut into words, before any merging: the pattern of GPT-2, by hand.
#pragma once

#include <cstddef>
#include <string_view>

namespace mh::detail {

// The end of the word that begins at `begin` < text.size(). Words follow each other without gaps. In the usual
// notation:
//   's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
// A byte that is no part of well-formed UTF-8 belongs to none of \s, \p{L}, \p{N}.
size_t word_end(std::string_view text, size_t begin);

}  // namespace mh::detail
