// From token ids to scores of classes.
#include "multihead/tasks/models/sequence_classifier.h"

#include <cmath>

#include "multihead/base/error.h"
#include "multihead/nn/positions.h"
#include "multihead/ops/elementwise.h"
#include "multihead/ops/products/matmul.h"
#include "multihead/ops/rows/dropout.h"
#include "multihead/ops/rows/embedding.h"
#include "multihead/ops/shape.h"

namespace mh {

namespace {

LayerPositions positions_in_layers(ModelPositions positions) {
  switch (positions) {
    case ModelPositions::rotary: return Rotary{};
    case ModelPositions::alibi: return Alibi{};
    case ModelPositions::t5: return T5Buckets{};
    default: return {};
  }
}

StackOptions encoder_stack(const TransformerConfig& c) {
  return {.block = {.width = c.width,
                    .heads = c.heads,
                    .feed_forward = c.feed_forward,
                    .norm = c.norm,
                    .middle = c.middle,
                    .dropout = c.dropout,
                    .positions = positions_in_layers(c.positions)},
          .layers = c.encoder_layers,
          .last_norm = c.norm == NormPlace::before};
}

const Param& word_table(const SequenceClassifierConfig& config, ParamStore& store) {
  const TransformerConfig& c = config.encoder;
  check(c.vocabulary > 0 && c.width > 0 && c.encoder_layers > 0 && c.max_length > 0 && config.classes > 0,
        "SequenceClassifier: vocabulary {}, width {}, {} layers, max_length {}, {} classes; expected all above 0",
        c.vocabulary, c.width, c.encoder_layers, c.max_length, config.classes);
  return store.make("embedding.weight", {c.vocabulary, c.width}, Init::normal(0.02));
}

// (texts, rows): row b holds 1 / length at the rows of text b, so that a product with it takes means.
Tensor mean_weights(const Sequences& at) {
  const Tensor out = zeros({at.count(), at.rows});
  const int32_t* starts = at.starts.data<int32_t>();
  for (int64_t b = 0; b < at.count(); ++b)
    for (int32_t row = starts[b]; row < starts[b + 1]; ++row)
      out.data<float>()[b * at.rows + row] = 1.0F / static_cast<float>(starts[b + 1] - starts[b]);
  return out;
}

Tensor read_rows(const Tensor& rows, const Sequences& at, Pooling pooling) {
  if (pooling == Pooling::none) return rows;
  if (pooling == Pooling::mean) return matmul(mean_weights(at), rows);
  return gather(rows, at.starts.slice(0, 0, at.count()));
}

float or_else(double given, float otherwise) { return given < 0 ? otherwise : static_cast<float>(given); }

}  // namespace

SequenceClassifier::SequenceClassifier(const SequenceClassifierConfig& config, std::shared_ptr<ParamStore> store)
    : config_(config),
      store_(std::move(store)),
      embedding_(word_table(config, *store_)),
      encoder_(Params(*store_) / "encoder", encoder_stack(config.encoder)),
      classifier_(Params(*store_) / "classifier", config.encoder.width, config.classes) {
  const TransformerConfig& c = config.encoder;
  if (c.positions == ModelPositions::sinusoidal) sinusoids_ = sinusoidal_positions(c.max_length, c.width);
  if (c.positions == ModelPositions::learned)
    positions_ = &store_->make("positions.weight", {c.max_length, c.width}, Init::normal(0.02));
  if (config.types > 1) types_ = &store_->make("types.weight", {config.types, c.width}, Init::normal(0.02));
}

Tensor SequenceClassifier::logits(const TokenBatch& texts, const Tensor& types, Pass& pass) const {
  const TransformerConfig& c = config_.encoder;
  check(texts.at.longest <= c.max_length, "SequenceClassifier: a text of {} tokens; expected at most {}",
        texts.at.longest, c.max_length);
  EmbeddingOptions options;
  if (sinusoids_) {
    options.scale = std::sqrt(static_cast<float>(c.width));
    options.positions = sinusoids_;
    options.position_ids = texts.at.positions;
  }
  Tensor x = embedding(embedding_.value, texts.ids, options);
  if (positions_ != nullptr) x = add(x, embedding(positions_->value, texts.at.positions));
  if (types_ != nullptr && types) x = add(x, embedding(types_->value, types));
  x = encoder_(dropout(x, pass.dropout(or_else(config_.head.embedding_dropout, c.dropout))), texts.at, pass);
  const Tensor pooled = read_rows(cast(x, DType::f32), texts.at, config_.head.pooling);
  return classifier_(dropout(pooled, pass.dropout(or_else(config_.head.classifier_dropout, c.dropout))),
                     {.result = DType::f32});
}

void SequenceClassifier::pack(DType compute) {
  encoder_.pack(compute);
  classifier_.pack(DType::f32);
}

}  // namespace mh
