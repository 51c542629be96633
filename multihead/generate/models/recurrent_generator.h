// The recurrent encoder-decoder as a Generator.
#pragma once

#include "multihead/generate/generator.h"
#include "multihead/models/recurrent_seq2seq.h"

namespace mh {

// A prompt is a source sentence. The model outlives the generator.
class RecurrentGenerator : public Generator {
 public:
  explicit RecurrentGenerator(const RecurrentSeq2Seq& model) : model_(model) {}
  Limits limits() const override;
  int64_t most_written(int64_t) const override { return model_.config().max_length; }
  std::vector<int32_t> prefix(const std::vector<int32_t>&) const override { return {model_.config().begin}; }
  // A state does not grow with what is written.
  int64_t room(const std::vector<int64_t>&, int64_t, int64_t) const override { return 0; }
  std::unique_ptr<State> begin(const Prompts& prompts, int64_t room, Pass& pass) const override;
  Tensor step(State& state, const std::vector<int32_t>& ids, Pass& pass) const override;
  Tensor logits(const Tensor& rows) const override { return model_.logits(rows); }
  TopK top(const Tensor& rows, int64_t k) const override { return model_.top_tokens(rows, k); }

 private:
  const RecurrentSeq2Seq& model_;
};

}  // namespace mh
