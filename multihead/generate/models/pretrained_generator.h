// A Hugging Face model that writes, as a Generator: a decoder alone, or an encoder and a decoder.
#pragma once

#include "multihead/generate/generator.h"
#include "multihead/models/pretrained/pretrained.h"

namespace mh {

// A prompt is what the model reads, with the special tokens it wants there (a source's </s>, a text's beginning). The
// model outlives the generator.
class PretrainedGenerator : public Generator {
 public:
  // `decoder_start`: what a decoder behind an encoder begins with; -1: as the model's config says. Throws:
  // invalid_argument where the model predicts no next token, or nothing says what to begin with.
  explicit PretrainedGenerator(const Pretrained& model, int32_t decoder_start = -1);

  Limits limits() const override;
  int64_t most_written(int64_t prompt) const override;
  std::vector<int32_t> prefix(const std::vector<int32_t>& prompt) const override;
  int64_t room(const std::vector<int64_t>& prompts, int64_t width, int64_t longest) const override;
  std::unique_ptr<State> begin(const Prompts& prompts, int64_t room, Pass& pass) const override;
  Tensor step(State& state, const std::vector<int32_t>& ids, Pass& pass) const override;
  Tensor logits(const Tensor& rows) const override;
  TopK top(const Tensor& rows, int64_t k) const override { return top_k(logits(rows), k); }

 private:
  bool translates() const;  // whether an encoder reads the prompt
  const Pretrained& model_;
  int32_t start_;
};

}  // namespace mh
