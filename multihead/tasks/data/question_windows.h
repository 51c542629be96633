// Questions and contexts as windows of tokens: a long context is read in several that overlap.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "multihead/text/tokenizer.h"

namespace mh {

struct WindowSizes {
  int64_t max_length = 384;  // of a window, in tokens, question and special ones included
  int64_t stride = 128;      // tokens that a window has in common with the one before it; at most half a window
};

// What stands in the windows of many questions.
struct QuestionWindows {
  std::vector<Encoded> windows{};
  std::vector<size_t> whose{};  // by window: the number of its question
};

// The windows of one question. `name` stands in the sentence: "Answerer: question 3". Throws: invalid_argument for text
// that is not UTF-8, and for a question that leaves no place for the context.
std::vector<Encoded> question_windows(const Tokenizer& tokenizer, std::string_view question, std::string_view context,
                                      const WindowSizes& sizes, const std::string& name);

// Bytes of a context, [begin, end).
struct ContextSpan {
  size_t begin = 0, end = 0;
};

// Rows of a window, first and last included.
struct WindowSpan {
  int32_t first = 0, last = 0;
  friend bool operator==(const WindowSpan&, const WindowSpan&) = default;
};

// From the first row that has a part of the answer to the last one; both 0, the row that stands for "no answer", where
// the answer is empty or does not lie whole in this window.
WindowSpan answer_rows(const Encoded& window, const ContextSpan& answer);

}  // namespace mh
