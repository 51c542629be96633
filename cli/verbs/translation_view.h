// What `multihead translate` prints of one line's translation.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "multihead/generate/text/translator.h"

namespace mh::cli {

struct TranslationView {
  bool numbers = false;  // the line's number first: where a line has several translations
  bool scores = false, alignments = false, attention = false;
  bool json = false;  // one object for each candidate, in place of the columns
  int64_t layer = 0;  // of the decoder, from 0
  int64_t head = 0;   // from 1; 0: the mean of all

  bool looks() const { return alignments || attention || json; }
};

// All candidates of the line with that number (from 1), each on a line of its own:
//   NUMBER <tab> SCORE <tab> TEXT <tab> PAIRS, as many of them as the view wants, and the picture of the attention
//   behind; or
//   {"line": 1, "rank": 1, "text": "…", "score": -0.12, "cut": false, "tokens": [{"text": "Gu", "log_p": -0.2}, …],
//    "alignment": [[source word, target word], …]}
std::string shown(const TranslationView& view, const Translator& translator, int64_t number,
                  const Translation& translation);

// The lowest of the means of log p per token over the sentences of the best candidate; nothing for an empty line.
std::optional<double> lowest_mean(const Translation& translation);

}  // namespace mh::cli
