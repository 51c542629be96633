// The blocks of the Transformer: feed-forward, encoder and decoder layers.
#pragma once

#include "multihead/nn/attention_state.h"
#include "multihead/nn/block_options.h"
#include "multihead/nn/multi_head_attention.h"

namespace mh {

// linear2(middle(linear1(x))), named as in torch's layers; linear2(f(gate(x)) · linear1(x)) where gated and separate.
class FeedForward {
 public:
  FeedForward(const Params& at, const BlockOptions& options);
  // residual + dropout(result).
  Tensor add_to(const Tensor& residual, const Tensor& x, Pass& pass) const;
  void pack(DType compute);

 private:
  Tensor middle(const Tensor& x, Pass& pass) const;
  BlockOptions options_;
  std::optional<LinearGroup> gated_;  // gate and linear1, where separate
  std::optional<Linear> linear1_;
  Linear linear2_;
};

// Rows x (rows, width) f32 of ragged sequences in and out; parameters as torch.nn.TransformerEncoderLayer names them.
class EncoderLayer {
 public:
  // `shared_table`: self-attention's T5 table is given by read_table.
  EncoderLayer(const Params& at, const BlockOptions& options, bool shared_table = false);
  Tensor operator()(const Tensor& x, const Sequences& at, Pass& pass, const AttendOptions& options = {}) const;
  // The same with self-attention given: self_attend(normalised rows) -> o (rows, H, D).
  template <class SelfAttend>
  Tensor step(const Tensor& x, Pass& pass, SelfAttend&& self_attend) const;
  void pack(DType compute);

  MultiHeadAttention self_attn;

 private:
  Tensor ready(const std::optional<Norm>& norm, const Tensor& x, const Pass& pass) const;
  Tensor ended(const std::optional<Norm>& norm, const Tensor& x) const;
  BlockOptions options_;
  FeedForward feed_forward_;
  std::optional<Norm> norm1_, norm2_;
};

template <class SelfAttend>
Tensor EncoderLayer::step(const Tensor& x, Pass& pass, SelfAttend&& self_attend) const {
  Tensor y = self_attn.finish(self_attend(ready(norm1_, x, pass)), pass, {x, options_.dropout});
  if (options_.norm == NormPlace::parallel) return feed_forward_.add_to(y, ready(norm2_, x, pass), pass);
  y = ended(norm1_, y);
  return ended(norm2_, feed_forward_.add_to(y, ready(norm2_, y, pass), pass));
}

// Parameters as torch.nn.TransformerDecoderLayer names them; self-attention is causal.
class DecoderLayer {
 public:
  DecoderLayer(const Params& at, const BlockOptions& options, bool shared_table = false);
  Tensor operator()(const Tensor& x, const Sequences& at, const EncoderOutput& memory, Pass& pass,
                    const AttendOptions& self = {}, const AttendOptions& cross = {}) const;
  // The same with self-attention and cross-attention given: a step over kept keys and values.
  template <class SelfAttend, class CrossAttend>
  Tensor step(const Tensor& x, Pass& pass, SelfAttend&& self_attend, CrossAttend&& cross_attend) const;
  void pack(DType compute);

  MultiHeadAttention self_attn, cross_attn;

 private:
  Tensor ready(const std::optional<Norm>& norm, const Tensor& x, const Pass& pass) const;
  Tensor ended(const std::optional<Norm>& norm, const Tensor& x) const;
  BlockOptions options_;
  FeedForward feed_forward_;
  std::optional<Norm> norm1_, norm2_, norm3_;
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

}  // namespace mh
