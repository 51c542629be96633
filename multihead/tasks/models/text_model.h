// The model of a task that gives labels to texts or to their tokens: our own, or one of Hugging Face's families.
#pragma once

#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "multihead/models/pretrained/pretrained.h"
#include "multihead/tasks/data/labels.h"
#include "multihead/tasks/models/sequence_classifier.h"
#include "multihead/tasks/models/start_weights.h"
#include "multihead/text/tokenizer.h"

namespace mh {

// The word "problem_type" of Hugging Face's config.json, and the way back; any other word is LabelKind::one.
std::string problem_type_of(LabelKind kind);
LabelKind label_kind_of(const std::string& problem_type);

class TextModel {
 public:
  explicit TextModel(SequenceClassifier own) : model_(std::move(own)) {}
  explicit TextModel(Pretrained pretrained) : model_(std::move(pretrained)) {}

  // f32 (texts, classes); of a model that labels tokens (rows, classes). `types` i32 (rows), read where the model has
  // types, or empty: all 0.
  Tensor logits(const TokenBatch& texts, const Tensor& types, Pass& pass) const;
  // The same of any head of a model of Hugging Face's, by its names of outputs. Throws: invalid_argument for our own.
  ModelOutputs outputs(const TokenBatch& texts, const Tensor& types, Pass& pass) const;
  // Lays the weights out for inference. To be called again after they change.
  void pack(DType compute);

  int64_t classes() const;
  int64_t max_length() const;   // of a text, in tokens
  LabelKind labels() const;     // what the scores of a text mean
  bool is_pair_model() const;   // our own, trained on pairs
  std::string summary() const;  // "modernbert, width 128, 4 heads, 2 layers"
  // Tensors of its folder that it does not read.
  const std::vector<std::string>& unused() const;
  const SequenceClassifier* own() const { return std::get_if<SequenceClassifier>(&model_); }
  const Pretrained* pretrained() const { return std::get_if<Pretrained>(&model_); }

 private:
  std::variant<SequenceClassifier, Pretrained> model_;
};

struct TextModelPlan {
  HeadKind head = HeadKind::sequence;  // or token; or question, of Hugging Face's families
  const TaskSetup& setup;
  const Labels& labels;
  const Tokenizer& tokenizer;
};

// The model that setup.from (a folder of Hugging Face's), model.kind and the other keys of [model] describe, made in
// `store`. Weights of the folder are copied where name and shape fit; the others, such as a head for other labels, are
// fresh. A run that is resumed describes its model by its own folder. Throws: as Pretrained::load and fresh.
TextModel make_text_model(const TextModelPlan& plan, std::shared_ptr<ParamStore> store);

// Whether that is a model of one of Hugging Face's families.
bool is_of_family(const TaskSetup& setup);

}  // namespace mh
