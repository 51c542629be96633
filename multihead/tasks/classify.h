// Classification as a task: a text, or a pair, with a label, several or a number; its metrics.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "multihead/metrics/classification.h"
#include "multihead/tasks/data/batches.h"
#include "multihead/tasks/data/labelled_text.h"
#include "multihead/tasks/data/text_targets.h"
#include "multihead/tasks/models/labelled_model.h"
#include "multihead/tasks/task.h"

namespace mh {

// Throws: as load_labelled_model.
LabelledModel load_classifier(const std::string& folder);

// A batch of texts without padding.
struct TextsOfOneBatch : Batch {
  TokenBatch texts{};
  Tensor types{};  // i32 (rows)
  TextTargets right{};
  int64_t tokens() const override { return right.size(); }
};

// What a model says of examples, and whether it is right.
struct ClassScores {
  double loss =
      0;  // per example: -log p of the label; of several labels the mean over all labels, of a number (x - y)²
  std::vector<int32_t> predictions{}, references{};  // of LabelKind::one
  int64_t classes = 0;
  LabelKind labels = LabelKind::one;
  std::vector<float> said{}, right{};  // of several labels logits and 0 or 1, (examples, classes); of numbers one each

  // Takes rows of f32 logits (examples, classes) in, and the class of each.
  void add(const Tensor& logits, const std::vector<int32_t>& right);
  // The same of any kind of labels.
  void add(const Tensor& logits, const TextTargets& right);
  int64_t size() const;  // examples
  // {"accuracy", "macro_f1", "matthews", "loss"}; macro F1 and Matthews up to 10,000 classes. Of several labels, which
  // are said where their probability is above a half, {"micro_f1", "macro_f1", "exact_match", "loss"}; of numbers
  // {"pearson", "spearman", "mean_absolute_error", "loss"}, correlations of fewer than two of them NaN.
  Metrics metrics() const;
};

struct ClassScoreOptions {
  int64_t tokens_per_batch = 4096;
  DType compute = DType::f32;
  std::string label_separator = ",";
};
// Of the texts of a file, by the columns that `data` names. Lays the model's weights out for inference. Throws: as
// read_labelled; invalid_argument, with file and line, where a label was not in the training data.
ClassScores score_classes(LabelledModel& model, const LabelledTexts& texts, const ClassScoreOptions& options = {});

class ClassifyTask : public Task {
 public:
  // Reads the data. Throws: as read_labelled, settle_tokenizer and BatchOrder; invalid_argument where the training data
  // have fewer than 2 labels (1, where a text has several), or the validation data one that they have not.
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
  TextTargets train_right_, valid_right_;
  std::vector<float> weights_;  // by class; empty: all 1
  std::optional<BatchOrder> order_;
  std::optional<TextModel> model_;
};

}  // namespace mh
