// Recurrent encoder and decoder, without attention, with additive and with multiplicative attention.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "multihead/models/transformer.h"
#include "multihead/nn/recurrent.h"

namespace mh {

// How a recurrent decoder looks at the source: not at all; by v · tanh(W s + U m) of its state before each step, which
// then reads what was found (Bahdanau, Cho, Bengio 2015); by (W h) · m of its state after the step (Luong, Pham,
// Manning 2015, "general").
enum class PairAttention : uint8_t { none, additive, multiplicative };

struct RecurrentConfig {
  Cell cell = Cell::lstm;
  PairAttention attention = PairAttention::multiplicative;
  int64_t vocabulary = 8000, width = 256;  // width of the embedding
  int64_t hidden = 456;  // of the decoder's state; an encoder of both directions has half of it in each
  int64_t encoder_layers = 2, decoder_layers = 2;
  float dropout = 0.2F;
  bool tied = true;  // source, target and output share one matrix; else each has its own
  int64_t max_length = 256;

  int32_t pad = 0, begin = 1, end = 2;  // ids of the special tokens
};

// What the decoder is given of a source.
struct RecurrentMemory {
  Tensor rows{}, keys{};  // (rows, hidden) with attention; keys: rows as the scores read them
  Sequences at{};
  std::vector<RecurrentState> start{};  // of every layer of the decoder
};

// Hypotheses on their way: each sentence is continued by one at first, then by as many as `choose` says.
struct RecurrentHypotheses {
  RecurrentMemory memory{};
  std::vector<RecurrentState> layers{};
  std::vector<int64_t> counts{};  // of hypotheses of each sentence
  RecurrentMemory own{};          // additive: the memory of every hypothesis, made of `memory` where empty
  int64_t written = 0;

  int64_t count() const { return layers.front().h.size(0); }
  void choose(const std::vector<int32_t>& parents, const std::vector<int64_t>& chosen);
};

// The encoder reads the source from its last token to its first without attention, and both ways with it; layer n of
// the decoder starts from the last state of layer n of the encoder, from 0 where there is none. Rows before the output
// are a linear map to the embedding's width: of h alone, or tanh of it of [h, c], c what attention found.
// Parameters: embedding.weight (V, C) and, untied, target_embedding.weight and output.weight; encoder.*, decoder.* as
// torch.nn names them; attention.query.weight (hidden, hidden), attention.key.weight and attention.score.weight
// (1, hidden) of additive attention; readout.weight, readout.bias.
class RecurrentSeq2Seq {
 public:
  // Throws: invalid_argument where sizes do not fit, or the store's file lacks a parameter.
  RecurrentSeq2Seq(const RecurrentConfig& config, std::shared_ptr<ParamStore> store);

  RecurrentMemory encode(const TokenBatch& source, Pass& pass) const;
  // Rows before the output projection.
  Tensor decode(const TokenBatch& input, const RecurrentMemory& memory, Pass& pass) const;
  Tensor logits(const Tensor& rows) const;               // f32 (rows, V)
  TopK top_tokens(const Tensor& rows, int64_t k) const;  // top_k(logits(rows), k)
  CrossEntropy loss(const PairBatch& batch, Pass& pass, float smoothing) const;

  RecurrentHypotheses begin(RecurrentMemory memory) const;
  // One token further: `ids` are the last tokens of the hypotheses; rows before the output projection.
  Tensor step_rows(RecurrentHypotheses& state, const std::vector<int32_t>& ids, Pass& pass) const;
  // What the decoder looked at while it read `input`, of one sentence: f32 (1, Tq, Tk).
  // Throws: invalid_argument for several sentences, and for a model without attention.
  Tensor attention_of(const TokenBatch& input, const RecurrentMemory& memory, Pass& pass) const;

  // Lays the weights out for inference. To be called again after they change.
  void pack(DType compute = DType::f32);
  const RecurrentConfig& config() const { return config_; }
  ParamStore& params() const { return *store_; }

 private:
  bool additive() const { return config_.attention == PairAttention::additive; }
  Tensor embed(const Param& table, const Tensor& ids, Pass& pass) const;
  Tensor keys(const Tensor& rows, Pass& pass) const;
  Tensor found(const Tensor& h, const RecurrentMemory& memory, const Tensor& starts, Pass& pass, Tensor* weights) const;
  Tensor finish(const Tensor& h, const Tensor& context, Pass& pass) const;
  struct Fed {
    Tensor h, context;
  };
  Fed feed(const Tensor& embedded, const RecurrentMemory& memory, std::vector<RecurrentState>& layers, Pass& pass,
           Tensor* weights = nullptr) const;
  Tensor decode_fed(const TokenBatch& input, const RecurrentMemory& memory, Pass& pass,
                    Tensor* weights = nullptr) const;
  RecurrentConfig config_;
  std::shared_ptr<ParamStore> store_;
  const Param& embedding_;
  const Param* target_embedding_;
  const Param* output_weight_;
  RecurrentNet encoder_, decoder_;
  std::unique_ptr<Linear> query_, key_, readout_, output_;
  const Param* score_ = nullptr;
  TopKWeights top_;
};

}  // namespace mh
