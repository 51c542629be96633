// The words of a sentence as tokens, and which of those stand for the words.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "multihead/text/tokenizer.h"

namespace mh {

// A sentence as tokens. The first token of a word stands for it.
struct WordTokens {
  std::vector<int32_t> ids{};
  std::vector<int64_t> first{};  // by word: its first token; words past max_length have none
};
// Never without a token: a word that has none is the unknown word, or id 0.
WordTokens encode_words(const Tokenizer& tokenizer, std::span<const std::string> words, int64_t max_length);
// The same of the sentence as one text, with a space between its words, so that a tokenizer that marks spaces spells
// them as in any text: how models of Hugging Face's families are trained, here and elsewhere, and read. A word's first
// token is the first that ends in it.
WordTokens encode_sentence(const Tokenizer& tokenizer, std::span<const std::string> words, int64_t max_length);

}  // namespace mh
