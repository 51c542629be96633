// Stacks of the Transformer's layers, whole sequences at a time or step by step over kept keys and values.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "multihead/nn/blocks.h"

namespace mh {

// What a run of a stack shows of its layers, where asked for.
struct StackRecord {
  bool states = false, weights = false;
  bool last_normed = true;                           // the last state is what the last normalisation gives
  std::vector<Tensor> hidden_states;                 // the stack's input, and what each layer gives
  std::vector<Tensor> attentions, cross_attentions;  // f32 (B, H, Tq, Tk) of each layer
};

class Encoder {
 public:
  Encoder(const Params& at, const StackOptions& options);
  Tensor operator()(Tensor x, const Sequences& at, Pass& pass, const AttendOptions& options = {},
                    StackRecord* record = nullptr) const;
  // A causal stack over whole prompts, a sequence each, whose keys and values `state` keeps …
  Tensor begin(Tensor x, const Sequences& at, AttentionState& state, Pass& pass) const;
  // … and over one row more per hypothesis, at `positions`. Throws: invalid_argument where the stack is not causal.
  Tensor step(Tensor x, const Tensor& positions, AttentionState& state, Pass& pass) const;
  void pack(DType compute);
  // The layers there are, and which of them runs as number n of `depth()`: layers may share one.
  const std::deque<EncoderLayer>& layers() const { return layers_; }
  const EncoderLayer& layer(int64_t n) const { return layers_[place(n)]; }
  int64_t depth() const { return options_.layers; }

 private:
  Tensor finish(const Tensor& x, const Pass& pass) const;
  size_t place(int64_t n) const;
  Tensor relative() const;
  StackOptions options_;
  std::deque<EncoderLayer> layers_;
  std::vector<std::vector<Tensor>> params_;  // of each layer
  const Param* table_ = nullptr;             // of T5Buckets, where layers share it
  const Param* relative_ = nullptr;          // of Disentangled
  std::optional<Norm> norm_, relative_norm_;
};

class Decoder {
 public:
  Decoder(const Params& at, const StackOptions& options);
  Tensor operator()(Tensor x, const Sequences& at, const EncoderOutput& memory, Pass& pass,
                    StackRecord* record = nullptr) const;
  // One row more per hypothesis, at `positions`; `repeats` tells which rows of x are equal.
  Tensor step(Tensor x, const Tensor& positions, AttentionState& state, Pass& pass, RepeatedRows repeats = {}) const;
  // The last normalisation, in the type of the products.
  Tensor finish(const Tensor& x, const Pass& pass) const;
  void pack(DType compute);
  const std::deque<DecoderLayer>& layers() const { return layers_; }

 private:
  StackOptions options_;
  std::deque<DecoderLayer> layers_;
  std::vector<std::vector<Tensor>> params_;
  const Param* table_ = nullptr;
  std::optional<Norm> norm_;
};

}  // namespace mh
