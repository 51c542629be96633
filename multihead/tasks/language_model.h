// Language modelling as a task: a text in, the next token predicted, perplexity and bits per byte.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "multihead/models/language_model_file.h"
#include "multihead/tasks/data/batches.h"
#include "multihead/tasks/data/plain_text.h"
#include "multihead/tasks/task.h"
#include "multihead/tasks/task_setup.h"

namespace mh {

// How well a model predicts a text: -Σ log p over its tokens, the line ends </s> included.
struct TextScores {
  double nats = 0;
  int64_t tokens = 0, words = 0, bytes = 0, lines = 0;

  double loss() const { return nats / static_cast<double>(tokens); }
  // {"loss", "perplexity", "perplexity_per_word", "bits_per_byte", "perplexity_per_word_and_line"}, as
  // metrics/perplexity.h has them; the last counts a line's end as a word, as is done for WikiText-2.
  Metrics metrics() const;
};

struct TextScoreOptions {
  bool packed = true;  // windows run across lines; else every line is predicted alone
  TextLines lines = TextLines::sentences;
  int64_t longest = 0;  // tokens of a window; 0: as many as the model reads
  int64_t stride = 0;   // as TextWindows has it
  int64_t tokens_per_batch = 4096;
  DType compute = DType::f32;
};
// Lays the model's weights out for inference. Throws: as PlainText, line_break_of and TextWindows; invalid_argument for
// windows longer than the model reads.
TextScores score_text(LanguageModelFolder& model, const std::string& path, const TextScoreOptions& options = {});

class LanguageModelTask : public Task {
 public:
  // Reads the data. Throws: as PlainText, settle_tokenizer and BatchOrder.
  explicit LanguageModelTask(const TaskSetup& setup);

  TaskFacts facts() const override;
  std::string digest() const override { return train_.digest(); }
  std::string tokenizer() const override;
  int64_t batches(int64_t epochs) const override { return order_->in_epochs(epochs); }
  std::unique_ptr<Batch> batch(const Position& at) const override;
  Position after(const Position& at) const override { return order_->after(at); }
  void make_model(std::shared_ptr<ParamStore> store) override;
  CrossEntropy loss(const Batch& batch, Pass& pass) const override;
  Verdict validate(const ValidateOptions& options) override;
  void begin(const std::string& folder) const override;
  void save(const std::string& folder) const override;

 private:
  const TaskSetup setup_;
  Tokenizer tokenizer_;
  TextWindows train_, valid_;
  TextScores valid_sizes_;  // without nats
  std::optional<BatchOrder> order_;
  std::optional<DecoderOnly> model_;
};

}  // namespace mh
