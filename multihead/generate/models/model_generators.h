// The models of models/ as Generators.
#pragma once

#include "multihead/generate/generator.h"
#include "multihead/models/decoder_only.h"
#include "multihead/models/transformer.h"

namespace mh {

// A prompt is a source sentence. The model outlives the generator.
class TransformerGenerator : public Generator {
 public:
  explicit TransformerGenerator(const Transformer& model) : model_(model) {}
  Limits limits() const override;
  int64_t most_written(int64_t) const override { return model_.config().max_length; }
  std::vector<int32_t> prefix(const std::vector<int32_t>&) const override { return {model_.config().begin}; }
  int64_t room(const std::vector<int64_t>& prompts, int64_t width, int64_t longest) const override;
  std::unique_ptr<State> begin(const Prompts& prompts, int64_t room, Pass& pass) const override;
  Tensor step(State& state, const std::vector<int32_t>& ids, Pass& pass) const override;
  Tensor logits(const Tensor& rows) const override { return model_.logits(rows); }
  TopK top(const Tensor& rows, int64_t k) const override { return model_.top_tokens(rows, k); }

 private:
  const Transformer& model_;
};

// A prompt is the beginning of a text, which config().begin precedes; together with what is written it has at most
// max_length tokens. The model outlives the generator.
class DecoderOnlyGenerator : public Generator {
 public:
  explicit DecoderOnlyGenerator(const DecoderOnly& model) : model_(model) {}
  Limits limits() const override;
  int64_t most_written(int64_t prompt) const override { return model_.config().max_length - before() - prompt; }
  std::vector<int32_t> prefix(const std::vector<int32_t>& prompt) const override;
  int64_t room(const std::vector<int64_t>& prompts, int64_t width, int64_t longest) const override;
  std::unique_ptr<State> begin(const Prompts& prompts, int64_t room, Pass& pass) const override;
  Tensor step(State& state, const std::vector<int32_t>& ids, Pass& pass) const override;
  Tensor logits(const Tensor& rows) const override { return model_.logits(rows); }
  TopK top(const Tensor& rows, int64_t k) const override { return model_.top_tokens(rows, k); }

 private:
  int64_t before() const { return model_.config().begin >= 0 ? 1 : 0; }  // tokens before every prompt
  const DecoderOnly& model_;
};

}  // namespace mh
