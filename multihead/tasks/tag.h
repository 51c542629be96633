// Tagging as a task: every word of a sentence gets a tag; entity F1 as seqeval has it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "multihead/tasks/data/batches.h"
#include "multihead/tasks/models/labelled_model.h"
#include "multihead/tasks/readers/conll_file.h"
#include "multihead/tasks/task.h"
#include "multihead/tasks/word_tokens.h"

namespace mh {

// The columns of data.text and data.label. Throws: invalid_argument where they are not numbers.
ConllOptions conll_options(const DataConfig& data);

// Throws: as load_labelled_model.
LabelledModel load_tagger_model(const std::string& folder);

// What a model says of sentences' words, and what is right.
struct TagScores {
  double loss = 0;  // -log p of the tag, per word that was read
  std::vector<std::vector<std::string>> predictions{}, references{};

  // {"f1", "precision", "recall", "accuracy", "loss"}: the first three of entities (metrics/entities.h).
  Metrics metrics() const;
};

struct TagScoreOptions {
  int64_t tokens_per_batch = 4096;
  DType compute = DType::f32;
};
// Words past the model's length are predicted as "O". Lays the model's weights out for inference. Throws:
// invalid_argument, with file and line, where a tag was not in the training data.
TagScores score_tags(LabelledModel& model, const TaggedSentences& sentences, const TagScoreOptions& options = {});

class TagTask : public Task {
 public:
  // Reads the data. Throws: as read_conll, settle_tokenizer and BatchOrder.
  explicit TagTask(const TaskSetup& setup);

  TaskFacts facts() const override;
  std::string digest() const override;
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
  struct Encoded {
    std::vector<WordTokens> sentences{};
    std::vector<std::vector<int32_t>> tags{};  // by word
  };
  Encoded encoded(const TaggedSentences& sentences) const;

  const TaskSetup setup_;
  Tokenizer tokenizer_;
  Labels labels_;
  TaggedSentences valid_text_;
  Encoded train_, valid_;
  std::optional<BatchOrder> order_;
  std::optional<TextModel> model_;
};

}  // namespace mh
