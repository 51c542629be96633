// Answering as a task: questions about contexts, whose answer is a span of the context or none; exact match and F1 as
// SQuAD's scripts have them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "multihead/metrics/answers.h"
#include "multihead/tasks/data/batches.h"
#include "multihead/tasks/data/question_windows.h"
#include "multihead/tasks/models/text_model.h"
#include "multihead/tasks/readers/squad_file.h"
#include "multihead/tasks/task.h"
#include "multihead/tasks/verbs/answerer.h"

namespace mh {

// Of an answerer's predictions, by question; SQuAD 2.0's rule where a question of the file has no answer, else 1.1's.
AnswerScores answer_scores(const SquadFile& questions, const std::vector<Answer>& answers);

// Whether a question of the file has no answer.
bool has_impossible(const SquadFile& questions);

// What the data of an answerer's run say of windows: data.max_length (0: the default) and data.stride.
AnswerOptions answer_options(const TaskSetup& setup);

class AnswerTask : public Task {
 public:
  // Reads the data. Throws: as read_squad, settle_tokenizer, question_windows and BatchOrder; invalid_argument for a
  // tokenizer that puts no special token before a text.
  explicit AnswerTask(const TaskSetup& setup);

  TaskFacts facts() const override;
  std::string digest() const override;
  std::string tokenizer() const override;
  int64_t batches(int64_t epochs) const override { return order_->in_epochs(epochs); }
  std::unique_ptr<Batch> batch(const Position& at) const override;
  Position after(const Position& at) const override { return order_->after(at); }
  void make_model(std::shared_ptr<ParamStore> store) override;
  // The mean over windows of (-log p[first row] - log p[last row]) / 2, each p over all rows of its window; row 0 where
  // the window has no whole answer. Of several answers the first counts.
  CrossEntropy loss(const Batch& batch, Pass& pass) const override;
  Verdict validate(const ValidateOptions& options) override;
  void begin(const std::string& folder) const override;
  void save(const std::string& folder) const override;

 private:
  struct Cut {
    QuestionWindows texts{};
    std::vector<WindowSpan> spans{};  // by window
  };
  Cut cut(const SquadFile& questions) const;
  std::unique_ptr<Batch> pack(const Cut& from, std::span<const size_t> which) const;
  CrossEntropy loss(const ModelOutputs& outputs, const Batch& batch, float smoothing) const;

  const TaskSetup setup_;
  Tokenizer tokenizer_;
  SquadFile valid_text_;
  Cut train_, valid_;
  int64_t train_questions_ = 0;
  std::optional<BatchOrder> order_;
  std::optional<TextModel> model_;
};

}  // namespace mh
