// Cuts contexts into windows, runs them together, and picks the best span of each question's windows.
#include "multihead/tasks/verbs/answerer.h"

#include <algorithm>

#include "multihead/base/error.h"
#include "multihead/tasks/verbs/answer_choice.h"
#include "multihead/tasks/verbs/text_encoder.h"

namespace mh {

namespace {

constexpr int64_t kTokensAskedAtOnce = 4096;

}  // namespace

struct Answerer::Parts {
  TextEncoder encoder;
};

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
  const WindowSizes sizes{std::min(options.max_length, encoder.longest), options.stride};
  QuestionWindows windows;
  std::vector<std::string_view> contexts;
  for (size_t n = 0; n < questions.size(); ++n) {
    contexts.push_back(questions[n].context);
    for (Encoded& window : question_windows(encoder.tokenizer, questions[n].question, questions[n].context, sizes,
                                            fmt::format("Answerer: question {}", n + 1))) {
      windows.windows.push_back(std::move(window));
      windows.whose.push_back(n);
    }
  }
  std::vector<WindowAnswer> best(windows.windows.size());
  in_batches(windows.windows, kTokensAskedAtOnce, [&](std::span<const size_t> which) {
    const ModelOutputs outputs = encoder.model.forward(inputs_of(encoder.model.architecture(), windows.windows, which));
    best_spans(outputs, windows, which, options.longest_answer, best);
  });
  return best_answers(windows, best, contexts, options.no_answer);
}

}  // namespace mh
