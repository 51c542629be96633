// Languages that are tokens behind the pieces of a SentencePiece model and stand in none of its files.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace mh::detail {

// In the order of their ids, of "M2M100", "wmt21", "MBart", "MBart50" or "Nllb" (names of tokenizer classes, and of a
// set of M2M-100's); none for another name.
std::vector<std::string> listed_languages(std::string_view family);

}  // namespace mh::detail
