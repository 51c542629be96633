// Classification as a task: a text, or a pair, with a label; accuracy, macro F1 and Matthews correlation.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "multihead/metrics/classification.h"
#include "multihead/tasks/data/batches.h"
#include "multihead/tasks/data/labelled_text.h"
#include "multihead/tasks/models/labelled_model.h"
#include "multihead/tasks/task.h"

namespace mh {

// Throws: as load_labelled_model.
LabelledModel load_classifier(const std::string& folder);

// A batch of texts without padding.
struct TextsOfOneBatch : Batch {
  TokenBatch texts{};
  Tensor types{};                   // i32 (rows)
  std::vector<int32_t> references;  // the class of each
  int64_t tokens() const override { return static_cast<int64_t>(references.size()); }
};

// What a model says of examples, and whether it is right.
struct ClassScores {
  double loss = 0;  // -log p of the label, per example
  std::vector<int32_t> predictions{}, references{};
  int64_t classes = 0;

  // Takes rows of f32 logits (examples, classes) in, and the class of each.
  void add(const Tensor& logits, const std::vector<int32_t>& right);
  // {"accuracy", "macro_f1", "matthews", "loss"}; macro F1 and Matthews up to 10,000 classes.
  Metrics metrics() const;
};

struct ClassScoreOptions {
  int64_t tokens_per_batch = 4096;
  DType compute = DType::f32;
};
// Of the texts of a file, by the columns that `data` names. Lays the model's weights out for inference. Throws: as
// read_labelled; invalid_argument, with file and line, where a label was not in the training data.
ClassScores score_classes(LabelledModel& model, const LabelledTexts& texts, const ClassScoreOptions& options = {});

class ClassifyTask : public Task {
 public:
  // Reads the data. Throws: as read_labelled, settle_tokenizer and BatchOrder; invalid_argument where the training data
  // have fewer than 2 labels, or the validation data one that they have not.
  explicit ClassifyTask(const TaskSetup& setup);

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

  const Labels& labels() const { return labels_; }
  const std::vector<float>& class_weights() const { return weights_; }

 private:
  const TaskSetup setup_;
  Tokenizer tokenizer_;
  Labels labels_;
  EncodedTexts train_, valid_;
  std::vector<int32_t> train_classes_, valid_classes_;
  std::vector<float> weights_;  // by class; empty: all 1
  std::optional<BatchOrder> order_;
  std::optional<TextModel> model_;
};

}  // namespace mh
