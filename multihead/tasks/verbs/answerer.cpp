// Cuts contexts into windows, runs them together, and picks the best span of each question's windows.
#include "multihead/tasks/verbs/answerer.h"

#include <algorithm>
#include <cmath>

#include "multihead/base/error.h"
#include "multihead/tasks/verbs/text_encoder.h"
#include "multihead/text/unicode/utf8.h"

namespace mh {

namespace {

constexpr int64_t kTokensAskedAtOnce = 4096;

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

struct WindowAnswer {
  size_t first = 0, last = 0;  // tokens
  double score = -1;           // -1: the window has no token of the context
  double none = 1;             // of no answer
};

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

struct Answerer::Parts {
  TextEncoder encoder;
  std::vector<Encoded> windows(const Question& one, const AnswerOptions& options, size_t number) const;
};

std::vector<Encoded> Answerer::Parts::windows(const Question& one, const AnswerOptions& options, size_t number) const {
  check(!utf8_error(one.question) && !utf8_error(one.context), "Answerer: question {} or its text is not UTF-8",
        number);
  const int64_t longest = std::min(options.max_length, encoder.longest);
  const auto taken = static_cast<int64_t>(encoder.tokenizer.encode_pair(one.question, "").ids.size());
  check(taken < longest, "Answerer: question {} has {} tokens; expected fewer than {}, so that some of the text fits",
        number, taken, longest);
  const int64_t stride = std::min({options.stride, longest / 2, longest - taken - 1});
  return encoder.tokenizer.encode_pair_windows(
      one.question, one.context, {.max_length = longest, .truncate = Truncate::only_second, .stride = stride});
}

Answerer Answerer::load(const std::string& folder, DType compute) {
  return Answerer(std::make_shared<Parts>(Parts{load_text_encoder(folder, HeadKind::question, compute)}));
}

Answer Answerer::operator()(std::string_view question, std::string_view context, const AnswerOptions& options) const {
  const Question one[] = {{std::string(question), std::string(context)}};
  return (*this)(one, options).front();
}

std::vector<Answer> Answerer::operator()(std::span<const Question> questions, const AnswerOptions& options) const {
  check(options.max_length >= 1 && options.longest_answer >= 1 && options.stride >= 0,
        "Answerer: max_length {}, longest_answer {}, stride {}; expected 1 or more, and a stride of 0 or more",
        options.max_length, options.longest_answer, options.stride);
  const TextEncoder& encoder = parts_->encoder;
  std::vector<Encoded> windows;
  std::vector<size_t> whose;
  for (size_t n = 0; n < questions.size(); ++n)
    for (Encoded& window : parts_->windows(questions[n], options, n + 1)) {
      if (window.ids.empty()) continue;
      windows.push_back(std::move(window));
      whose.push_back(n);
    }
  std::vector<WindowAnswer> best(windows.size());
  in_batches(windows, kTokensAskedAtOnce, [&](std::span<const size_t> which) {
    const ModelOutputs outputs = encoder.model.forward(inputs_of(encoder, windows, which));
    const Tensor starts = outputs["start_logits"].contiguous(), ends = outputs["end_logits"].contiguous();
    for (size_t n = 0; n < which.size(); ++n) {
      const int32_t row = outputs.at.starts.data<int32_t>()[n];
      const Encoded& window = windows[which[n]];
      best[which[n]] = best_span(window, window.ids[0], starts.data<float>() + row, ends.data<float>() + row,
                                 options.longest_answer);
    }
  });
  std::vector<Answer> out(questions.size());
  std::vector<double> none(questions.size(), 1), found(questions.size(), -1);
  for (size_t n = 0; n < windows.size(); ++n) {  // in the text's order: of equals the first counts
    none[whose[n]] = std::min(none[whose[n]], best[n].none);
    if (best[n].score <= found[whose[n]]) continue;
    found[whose[n]] = best[n].score;
    out[whose[n]] = answer_of(windows[n], best[n], questions[whose[n]].context);
  }
  for (size_t n = 0; n < out.size(); ++n)
    if (options.no_answer && none[n] >= found[n]) out[n] = {.score = static_cast<float>(none[n])};
  return out;
}

}  // namespace mh
