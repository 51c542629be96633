// A decoder-only Transformer: every token is predicted from those before it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "multihead/models/transformer.h"
#include "multihead/tasks/batches.h"

namespace mh {

// Parameters: embedding.weight (V, C), decoder.layers.N.… as torch.nn.TransformerEncoderLayer names them, decoder.norm.…
// and, untied, output.weight (V, C). Embeddings are multiplied by √C where positions are sinusoidal, as in the paper. Of
// the config it has decoder_layers; encoder_layers is not read.
class CausalModel {
 public:
  // Throws: invalid_argument where sizes do not fit, or the store's file lacks a parameter.
  CausalModel(const TransformerConfig& config, std::shared_ptr<ParamStore> store);

  // Rows before the output projection.
  Tensor rows(const TokenBatch& input, Pass& pass) const;
  Tensor logits(const Tensor& rows) const;  // f32 (rows, V)
  CrossEntropy loss(const TextBatch& batch, Pass& pass, float smoothing) const;

  // Lays the weights out for inference. To be called again after they change.
  void pack(DType compute);
  const TransformerConfig& config() const { return config_; }
  ParamStore& params() const { return *store_; }

 private:
  TransformerConfig config_;
  std::shared_ptr<ParamStore> store_;
  const Param& embedding_;
  const Param* output_weight_;
  const Param* learned_positions_ = nullptr;
  Tensor sinusoids_;
  Encoder stack_;
  std::unique_ptr<Linear> output_;
};

struct SampleOptions {
  int64_t samples = 1, longest = 64;  // texts, and tokens of each
  uint64_t seed = 1;
  DType compute = DType::f32;
};

// Texts drawn token by token with the model's own probabilities, from <s> to </s> or `longest`; ids without either. A
// draw depends on the seed, the sample and the token's place alone.
std::vector<std::vector<int32_t>> sample_texts(const CausalModel& model, const SampleOptions& options);

}  // namespace mh
