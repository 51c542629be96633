// The encoder-decoder Transformer of "Attention is all you need", for training and for translating.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "multihead/models/pretrained/token_batch.h"
#include "multihead/nn/stacks.h"
#include "multihead/ops/products/linear_top_k.h"
#include "multihead/ops/rows/cross_entropy.h"

namespace mh {

enum class ModelPositions { sinusoidal, learned, rotary, alibi, t5 };

struct TransformerConfig {
  int64_t vocabulary = 8000, width = 256, heads = 4, feed_forward = 1024;
  int64_t encoder_layers = 3, decoder_layers = 3;
  NormPlace norm = NormPlace::before;
  Middle middle = Middle::relu;
  ModelPositions positions = ModelPositions::sinusoidal;
  float dropout = 0.1F;
  bool tied = true;  // source, target and output share one matrix; else each has its own
  int64_t max_length = 256;

  int32_t pad = 0, begin = 1, end = 2;  // ids of the special tokens
};

// What one training step reads: source x₁ … xₘ </s>, input <s> y₁ … yₙ, labels y₁ … yₙ </s>.
struct PairBatch {
  TokenBatch source{}, input{};
  Tensor labels{};  // i32 (rows of input)
  int64_t target_tokens() const { return labels.count(); }
};
using SentencePair = std::pair<std::vector<int32_t>, std::vector<int32_t>>;  // ids without special tokens
PairBatch pair_batch(const std::vector<const SentencePair*>& pairs, const TransformerConfig& config);

// Parameters as torch.nn.Transformer names them, plus embedding.weight (V, C) and, untied, target_embedding.weight (V,
// C) and output.weight (V, C).
class Transformer {
 public:
  // Throws: invalid_argument where sizes do not fit, or the store's file lacks a parameter.
  Transformer(const TransformerConfig& config, std::shared_ptr<ParamStore> store);

  EncoderOutput encode(const TokenBatch& source, Pass& pass) const;
  // Rows before the output projection.
  Tensor decode(const TokenBatch& input, const EncoderOutput& memory, Pass& pass) const;
  Tensor logits(const Tensor& rows) const;  // f32 (rows, V)
  // top_k(logits(rows), k), by linear_top_k where the model is packed for f32.
  TopK top_tokens(const Tensor& rows, int64_t k) const;
  CrossEntropy loss(const PairBatch& batch, Pass& pass, float smoothing) const;

  // One hypothesis, still empty, for every sentence of the memory, and room for so many keys of all of them.
  AttentionState begin(const EncoderOutput& memory, int64_t room, Pass& pass) const;
  // One token further: `ids` are the last tokens of the hypotheses; rows (hypotheses, C) before the output projection.
  Tensor step_rows(AttentionState& state, const std::vector<int32_t>& ids, Pass& pass) const;
  // The same with the projection: logits (hypotheses, V) of the next token.
  Tensor step(AttentionState& state, const std::vector<int32_t>& ids, Pass& pass) const {
    return logits(step_rows(state, ids, pass));
  }
  // Cross-attention of one layer while writing `input`: f32 (B, H, Tq, Tk), of the last row of each call's sentence.
  Tensor cross_weights(const TokenBatch& input, const EncoderOutput& memory, int64_t layer, Pass& pass) const;

  // Lays the weights out for inference. To be called again after they change.
  void pack(DType compute = DType::f32);
  const TransformerConfig& config() const { return config_; }
  ParamStore& params() const { return *store_; }

 private:
  Tensor embed(const Param& table, const Tensor& ids, const Tensor& positions, Pass& pass) const;
  TransformerConfig config_;
  std::shared_ptr<ParamStore> store_;
  const Param& embedding_;
  const Param* target_embedding_;
  const Param* output_weight_;
  const Param* learned_positions_ = nullptr;
  Tensor sinusoids_;
  Encoder encoder_;
  Decoder decoder_;
  std::unique_ptr<Linear> output_;
  TopKWeights top_;  // of output_weight_, where packed for f32
};

}  // namespace mh
