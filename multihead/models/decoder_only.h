// The decoder-only Transformer (GPT): predicts the next token of a text, for training and for generating.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "multihead/models/pretrained/token_batch.h"
#include "multihead/models/transformer.h"

namespace mh {

struct DecoderOnlyConfig {
  int64_t vocabulary = 8000, width = 256, heads = 4, feed_forward = 1024, layers = 4;
  NormPlace norm = NormPlace::before;
  Middle middle = Middle::gelu;
  ModelPositions positions = ModelPositions::learned;
  float dropout = 0.1F;
  bool tied = true;  // the output reads the embedding's matrix; else one of its own
  int64_t max_length = 256;

  int32_t begin = 1;  // stands before every prompt; -1: nothing does
  int32_t end = 2;
};

// A training config's [model] table read as a decoder-only model: layers are its decoder_layers; encoder_layers and pad
// are not read.
DecoderOnlyConfig decoder_only_config(const TransformerConfig& config);

// Parameters: embedding.weight (V, C); positions.weight (max_length, C) where learned; decoder.layers.N… and
// decoder.norm…, named as EncoderLayer names them; untied, output.weight (V, C). Embeddings are multiplied by √C where
// positions are sinusoidal, as in the paper.
class DecoderOnly {
 public:
  // Throws: invalid_argument where sizes do not fit, or the store's file lacks a parameter.
  DecoderOnly(const DecoderOnlyConfig& config, std::shared_ptr<ParamStore> store);

  // Rows (tokens, C) before the output projection; row i of a sequence sees its tokens 0 … i.
  Tensor hidden(const TokenBatch& input, Pass& pass) const;
  Tensor logits(const Tensor& hidden) const;  // f32 (rows, V)
  Tensor logits(const TokenBatch& input, Pass& pass) const { return logits(hidden(input, pass)); }
  // `labels` i32 (tokens): the token behind each of the input's; -1 does not count. Logits are never held whole.
  CrossEntropy loss(const TokenBatch& input, const Tensor& labels, Pass& pass, float smoothing = 0) const;
  // top_k(logits(hidden), k), by linear_top_k where the model is packed for f32.
  TopK top_tokens(const Tensor& hidden, int64_t k) const;

  // Reads the prompts, whose lengths may differ (0 too), and keeps their keys and values; `room` as AttentionState's.
  AttentionState begin(const TokenBatch& prompts, int64_t room, Pass& pass) const;
  // One token further: `ids` are the last tokens of the hypotheses; rows (hypotheses, C).
  Tensor step(AttentionState& state, const std::vector<int32_t>& ids, Pass& pass) const;

  // Lays the weights out for inference. To be called again after they change.
  void pack(DType compute = DType::f32);
  const DecoderOnlyConfig& config() const { return config_; }
  ParamStore& params() const { return *store_; }

 private:
  Tensor embed(const Tensor& ids, const Tensor& positions, Pass& pass) const;
  DecoderOnlyConfig config_;
  std::shared_ptr<ParamStore> store_;
  const Param& embedding_;
  const Param* learned_positions_ = nullptr;
  const Param* output_weight_;
  Tensor sinusoids_;
  Encoder stack_;
  std::unique_ptr<Linear> output_;
  TopKWeights top_;  // of output_weight_, where packed for f32
};

}  // namespace mh
