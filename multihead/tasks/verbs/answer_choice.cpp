// Probabilities over a window's tokens, and the spans they speak for.
#include "multihead/tasks/verbs/answer_choice.h"

#include <algorithm>
#include <cmath>

namespace mh {

namespace {

// exp(x - max) / Σ over the tokens that may be chosen; the others have 0.
std::vector<double> probabilities(const float* x, const std::vector<uint8_t>& open) {
  double top = -INFINITY, sum = 0;
  for (size_t n = 0; n < open.size(); ++n)
    if (open[n] != 0) top = std::max(top, double{x[n]});
  std::vector<double> out(open.size());
  for (size_t n = 0; n < open.size(); ++n) sum += out[n] = open[n] != 0 ? std::exp(x[n] - top) : 0;
  for (double& p : out) p /= sum;
  return out;
}

WindowAnswer best_span(const Encoded& window, int32_t first_id, const float* starts, const float* ends,
                       int64_t longest) {
  const size_t count = window.ids.size();
  std::vector<uint8_t> open(count), chosen(count);
  for (size_t n = 0; n < count; ++n) {
    chosen[n] = window.sequences[n] == 1 ? 1 : 0;
    // The first token stands for "no answer" and takes its part of the probabilities.
    open[n] = chosen[n] != 0 || (window.sequences[n] == -1 && window.ids[n] == first_id) ? 1 : 0;
  }
  const std::vector<double> start = probabilities(starts, open), end = probabilities(ends, open);
  WindowAnswer out{.none = start[0] * end[0]};
  for (size_t a = 1; a < count; ++a) {
    if (chosen[a] == 0) continue;
    for (size_t b = a; b < std::min(count, a + static_cast<size_t>(longest)); ++b)
      if (chosen[b] != 0 && start[a] * end[b] > out.score) out.first = a, out.last = b, out.score = start[a] * end[b];
  }
  return out;
}

// From the beginning of the first token's word to the end of the last one's.
Answer answer_of(const Encoded& window, const WindowAnswer& best, std::string_view context) {
  Answer out{.begin = window.offsets[best.first].begin,
             .end = window.offsets[best.last].end,
             .score = static_cast<float>(best.score)};
  for (size_t n = 0; n < window.ids.size(); ++n) {
    if (window.sequences[n] != 1 || window.words[n] < 0) continue;
    if (window.words[n] == window.words[best.first]) out.begin = std::min<size_t>(out.begin, window.offsets[n].begin);
    if (window.words[n] == window.words[best.last]) out.end = std::max<size_t>(out.end, window.offsets[n].end);
  }
  out.text = context.substr(out.begin, out.end - out.begin);
  return out;
}

}  // namespace

void best_spans(const ModelOutputs& outputs, const QuestionWindows& windows, std::span<const size_t> which,
                int64_t longest_answer, std::vector<WindowAnswer>& best) {
  const Tensor starts = outputs["start_logits"].contiguous(), ends = outputs["end_logits"].contiguous();
  for (size_t n = 0; n < which.size(); ++n) {
    const int32_t row = outputs.at.starts.data<int32_t>()[n];
    const Encoded& window = windows.windows[which[n]];
    best[which[n]] =
        best_span(window, window.ids[0], starts.data<float>() + row, ends.data<float>() + row, longest_answer);
  }
}

std::vector<Answer> best_answers(const QuestionWindows& windows, const std::vector<WindowAnswer>& best,
                                 std::span<const std::string_view> contexts, bool no_answer) {
  std::vector<Answer> out(contexts.size());
  std::vector<double> none(contexts.size(), 1), found(contexts.size(), -1);
  for (size_t n = 0; n < windows.windows.size(); ++n) {  // in the text's order: of equals the first counts
    const size_t whose = windows.whose[n];
    none[whose] = std::min(none[whose], best[n].none);
    if (best[n].score <= found[whose]) continue;
    found[whose] = best[n].score;
    out[whose] = answer_of(windows.windows[n], best[n], contexts[whose]);
  }
  for (size_t n = 0; n < out.size(); ++n)
    if (no_answer && none[n] >= found[n]) out[n] = {.score = static_cast<float>(none[n])};
  return out;
}

}  // namespace mh
