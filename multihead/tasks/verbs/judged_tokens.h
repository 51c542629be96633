// From what a model says of tokens to the tags of words and to entities.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "multihead/tasks/verbs/tagger.h"
#include "multihead/text/text_span.h"
#include "multihead/text/tokenizer.h"

namespace mh::detail {

// The tokens of one text, in order, without the special ones around it.
struct JudgedTokens {
  size_t labels = 0;
  std::vector<TextSpan> spans{};   // bytes of the text
  std::vector<int32_t> words{};    // numbers of the tokenizer's own words
  std::vector<float> p{};          // (tokens, labels): the probability of every label
  std::vector<int64_t> context{};  // tokens from it to the nearer end of the window it was judged in

  const float* row(size_t token) const { return p.data() + token * labels; }
};

// A part of a text that was read at once, with special tokens around it. `p`: a row of probabilities for each of its
// tokens. `first`: which token of the text its first one is.
struct JudgedWindow {
  const Encoded& tokens;
  const float* p;
  size_t first;
  bool begins_text, ends_text;  // so that no context is missing there
};

// Takes a window's tokens; windows come in the order of the text. One that was judged before, with as much context,
// stays as it is.
void add_window(JudgedTokens& to, const JudgedWindow& window);

// Of each token whether it goes on with the word of the one before it. `marked`: as Tokenizer::marks_words; the words
// are the tokenizer's. Else a token goes on where no space (U+0020) stands before it or at its beginning, and it is not
// at the beginning of the text.
std::vector<bool> goes_on(const JudgedTokens& tokens, std::string_view text, bool marked);

// The words, tags and entities of Tagging.
Tagging aggregated(const JudgedTokens& tokens, const std::vector<bool>& goes_on, std::string_view text,
                   const std::vector<std::string>& labels, Aggregation how);

}  // namespace mh::detail
