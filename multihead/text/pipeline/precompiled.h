// Precompiled: the normaliser that SentencePiece models bring along, a map of characters and clusters of them.
#pragma once

#include <string>
#include <string_view>

#include "multihead/text/pipeline/normalisers.h"

namespace mh::detail {

// `map`: four bytes with the size of a double-array trie, the trie, and the replacements, each ending in a zero byte.
// Clusters shorter than six bytes are looked up as a whole first: of them the shortest beginning that is in the map
// counts, and the rest vanishes; then characters one by one. An empty map changes nothing. Throws: invalid_argument,
// beginning with `where`, where the map is broken; the step where the trie leads to a replacement that is not there.
NormaliseStep precompiled_normaliser(std::string map, const std::string& where);

// Throws: invalid_argument, beginning with `where`, for what is not base64.
std::string from_base64(std::string_view text, const std::string& where);

}  // namespace mh::detail
