// An encoder that gives a text, or each of its tokens, a score for every class.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "multihead/models/pretrained/token_batch.h"
#include "multihead/models/transformer.h"
#include "multihead/tasks/task_setup.h"

namespace mh {

struct SequenceClassifierConfig {
  TransformerConfig encoder{};  // its encoder_layers, and what else tells an encoder
  HeadConfig head{};
  int64_t types = 1;  // of tokens: 2 where texts are pairs
  int64_t classes = 2;
  LabelKind labels = LabelKind::one;  // what its scores mean
};

// Embedding and positions (and types), dropout, encoder, mean or first row of each text (or every row), dropout, linear
// map. Parameters: embedding.weight (V, C), positions.weight, types.weight, encoder.layers.N.…, encoder.norm.…,
// classifier.weight (classes, C), classifier.bias.
class SequenceClassifier {
 public:
  // Throws: invalid_argument where sizes do not fit, or the store's file lacks a parameter.
  SequenceClassifier(const SequenceClassifierConfig& config, std::shared_ptr<ParamStore> store);

  // f32 (texts, classes), without pooling (rows, classes). `types` i32 (rows), or empty: all 0.
  Tensor logits(const TokenBatch& texts, const Tensor& types, Pass& pass) const;
  // Lays the weights out for inference. To be called again after they change.
  void pack(DType compute);
  const SequenceClassifierConfig& config() const { return config_; }
  ParamStore& params() const { return *store_; }

 private:
  SequenceClassifierConfig config_;
  std::shared_ptr<ParamStore> store_;
  const Param& embedding_;
  const Param *positions_ = nullptr, *types_ = nullptr;
  Tensor sinusoids_;
  Encoder encoder_;
  Linear classifier_;
};

}  // namespace mh
