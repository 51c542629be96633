// A tokenizer of whole words, learned from text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "multihead/text/tokenizer.h"

namespace mh {

// Runs of letters, digits and combining marks, and any other character alone: views of `text`, white space left out.
// `text` is UTF-8.
std::vector<std::string_view> words_of(std::string_view text);

struct LearnWordsOptions {
  int64_t min_count = 2;  // words seen less often are unknown
  bool lowercase = true;  // each character alone
  std::vector<std::string> specials{"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"};
  std::string unknown = "[UNK]";  // one of them
  bool wraps = false;             // "[CLS] text [SEP]" and "[CLS] text [SEP] pair [SEP]", as BERT reads them
};

// Words as words_of has them. A tokenizer.json with the model WordLevel, whose ids Hugging Face's `tokenizers` gives,
// too: specials first, in order, then the words, the most frequent first, equals by their bytes. It puts no special
// tokens around a text. The order of the lines does not matter. Throws: invalid_argument for a min_count below 1, and
// where the specials lack `unknown`.
Tokenizer learn_words(const std::vector<std::string>& lines, const LearnWordsOptions& options = {});

}  // namespace mh
