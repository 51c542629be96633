// Tokenizers whose tokens are whole words, or single characters: learned from lines.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "multihead/text/tokenizer.h"

namespace mh {

enum class WordUnit { words, characters };  // what white space parts; single characters, white space too

struct WordOptions {
  WordUnit unit = WordUnit::words;
  int32_t vocabulary = 30000;  // tokens at most, specials included
  std::vector<std::string> specials{"<pad>", "<s>", "</s>", "<unk>"};
  std::string unknown = "<unk>";  // what a word without a token becomes: one of the specials
  bool lowercase = false;
  int64_t min_frequency = 1;
  bool wraps = false;  // puts [CLS] and [SEP], two of the specials, around texts, as BERT reads them
};

// The most frequent words or characters of `lines`, of equals the one whose bytes come first, behind the specials: as
// Hugging Face's `WordLevelTrainer`. Throws: invalid_argument for a vocabulary that does not hold the specials, a
// special given twice, an unknown token that is none of them, a min_frequency below 1; where it wraps and the specials
// lack [CLS] or [SEP].
Tokenizer train_words(const std::vector<std::string>& lines, const WordOptions& options = {});

}  // namespace mh
