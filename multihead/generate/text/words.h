// Which word of a text a token belongs to.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "multihead/text/tokenizer.h"

namespace mh::detail {

// Of each token the word, counted by white space from 0, in which its last character stands; -1 for special tokens and
// those of white space alone.
std::vector<int64_t> words_of(const Tokenizer& tokenizer, const std::vector<int32_t>& ids);

// How many words `words` (as words_of gives them) tells of.
int64_t word_count(const std::vector<int64_t>& words);

// The token as text to be shown: whole UTF-8; special tokens as they are spelled, and an id that is none as <id>.
std::string token_text(const Tokenizer& tokenizer, int32_t id);

}  // namespace mh::detail
