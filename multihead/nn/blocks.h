// The blocks of the Transformer: feed-forward, encoder and decoder layers, and stacks of them.
#pragma once

#include <cstdint>
#include <deque>

#include "multihead/nn/attention_state.h"
#include "multihead/nn/multi_head_attention.h"

namespace mh {

enum class NormPlace { before, after };  // pre-norm: x + f(norm(x)); post-norm, the paper's: norm(x + f(x))

// The feed-forward's middle: an activation, or the gated forms f(a) · b over a twice as wide first matrix.
enum class Middle { relu, gelu, gelu_tanh, swiglu, geglu };

struct BlockOptions {
  int64_t width = 0, heads = 1, feed_forward = 0;
  NormPlace norm = NormPlace::before;
  Middle middle = Middle::relu;
  float dropout = 0;  // of attention weights, the middle of the feed-forward, and each sublayer's end
  bool bias = true;
  Norm::Options normalisation{};
  LayerPositions positions{};  // of self-attention
  int64_t key_heads = 0, key_width = 0, value_width = 0;
};

// linear2(middle(linear1(x))), named as in torch's layers.
class FeedForward {
 public:
  FeedForward(const Params& at, const BlockOptions& options);
  // residual + dropout(result).
  Tensor add_to(const Tensor& residual, const Tensor& x, Pass& pass) const;
  void pack(DType compute);

 private:
  BlockOptions options_;
  Linear linear1_, linear2_;
};

// Rows x (rows, width) f32 of ragged sequences in and out; parameters as torch.nn.TransformerEncoderLayer names them.
class EncoderLayer {
 public:
  EncoderLayer(const Params& at, const BlockOptions& options);
  Tensor operator()(const Tensor& x, const Sequences& at, Pass& pass, const AttendOptions& options = {}) const;
  // The same with self-attention given: self_attend(normalised rows) -> o (rows, H, D).
  template <class SelfAttend>
  Tensor step(const Tensor& x, Pass& pass, SelfAttend&& self_attend) const;
  void pack(DType compute);

  MultiHeadAttention self_attn;

 private:
  Tensor ready(const Norm& norm, const Tensor& x, const Pass& pass) const;
  Tensor ended(const Norm& norm, const Tensor& x) const;
  BlockOptions options_;
  FeedForward feed_forward_;
  Norm norm1_, norm2_;
};

template <class SelfAttend>
Tensor EncoderLayer::step(const Tensor& x, Pass& pass, SelfAttend&& self_attend) const {
  Tensor y = self_attn.finish(self_attend(ready(norm1_, x, pass)), pass, {x, options_.dropout});
  y = ended(norm1_, y);
  return ended(norm2_, feed_forward_.add_to(y, ready(norm2_, y, pass), pass));
}

// Parameters as torch.nn.TransformerDecoderLayer names them; self-attention is causal.
class DecoderLayer {
 public:
  DecoderLayer(const Params& at, const BlockOptions& options);
  Tensor operator()(const Tensor& x, const Sequences& at, const EncoderOutput& memory, Pass& pass,
                    const Tensor& self_head_mask = {}, const Tensor& cross_head_mask = {}) const;
  // The same with self-attention and cross-attention given: a step over kept keys and values.
  template <class SelfAttend, class CrossAttend>
  Tensor step(const Tensor& x, Pass& pass, SelfAttend&& self_attend, CrossAttend&& cross_attend) const;
  void pack(DType compute);

  MultiHeadAttention self_attn, cross_attn;

 private:
  Tensor ready(const Norm& norm, const Tensor& x, const Pass& pass) const;
  Tensor ended(const Norm& norm, const Tensor& x) const;
  BlockOptions options_;
  FeedForward feed_forward_;
  Norm norm1_, norm2_, norm3_;
};

// self_attend(rows) -> o (rows, H, D) of self-attention, cross_attend likewise; both get normalised rows.
template <class SelfAttend, class CrossAttend>
Tensor DecoderLayer::step(const Tensor& x, Pass& pass, SelfAttend&& self_attend, CrossAttend&& cross_attend) const {
  Tensor y = self_attn.finish(self_attend(ready(norm1_, x, pass)), pass, {x, options_.dropout});
  y = ended(norm1_, y);
  y = cross_attn.finish(cross_attend(ready(norm2_, y, pass)), pass, {y, options_.dropout});
  y = ended(norm2_, y);
  return ended(norm3_, feed_forward_.add_to(y, ready(norm3_, y, pass), pass));
}

// N layers and, with pre-norm, a last normalisation (torch's nn.Transformer has it with either).
struct StackOptions {
  BlockOptions block{};
  int64_t layers = 1;
  bool last_norm = true;
  bool causal = false;     // a decoder-only stack is an encoder that sees no later keys
  bool recompute = false;  // keep only the input of each layer and run it again for its gradients: long inputs
};

class Encoder {
 public:
  Encoder(const Params& at, const StackOptions& options);
  Tensor operator()(Tensor x, const Sequences& at, Pass& pass, const AttendOptions& options = {}) const;
  // A causal stack over whole prompts, a sequence each, whose keys and values `state` keeps …
  Tensor begin(Tensor x, const Sequences& at, AttentionState& state, Pass& pass) const;
  // … and over one row more per hypothesis, at `positions`. Throws: invalid_argument where the stack is not causal.
  Tensor step(Tensor x, const Tensor& positions, AttentionState& state, Pass& pass) const;
  void pack(DType compute);
  const std::deque<EncoderLayer>& layers() const { return layers_; }

 private:
  Tensor finish(const Tensor& x, const Pass& pass) const;
  StackOptions options_;
  std::deque<EncoderLayer> layers_;
  std::vector<std::vector<Tensor>> params_;  // of each layer
  std::optional<Norm> norm_;
};

class Decoder {
 public:
  Decoder(const Params& at, const StackOptions& options);
  Tensor operator()(Tensor x, const Sequences& at, const EncoderOutput& memory, Pass& pass) const;
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
  std::optional<Norm> norm_;
};

}  // namespace mh
