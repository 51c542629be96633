// From the start and end logits of windows to the best span of each question.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "multihead/models/pretrained/pretrained.h"
#include "multihead/tasks/data/question_windows.h"
#include "multihead/tasks/verbs/answerer.h"

namespace mh {

struct WindowAnswer {
  size_t first = 0, last = 0;  // tokens
  double score = -1;           // -1: the window has no token of the context
  double none = 1;             // of no answer
};

// The best span of each of these windows, which were run together in this order, written to best[which[n]].
void best_spans(const ModelOutputs& outputs, const QuestionWindows& windows, std::span<const size_t> which,
                int64_t longest_answer, std::vector<WindowAnswer>& best);

// The best answer of all windows of each question; of equals the first. `contexts` by question.
std::vector<Answer> best_answers(const QuestionWindows& windows, const std::vector<WindowAnswer>& best,
                                 std::span<const std::string_view> contexts, bool no_answer);

}  // namespace mh
