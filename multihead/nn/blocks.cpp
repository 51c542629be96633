// Runs encoder and decoder layers.
#include "multihead/nn/blocks.h"

#include "multihead/autograd/tape.h"
#include "multihead/ops/elementwise.h"
#include "multihead/ops/rows/activation.h"
#include "multihead/ops/rows/dropout.h"

namespace mh {

namespace {

MultiHeadAttentionOptions attention_of(const BlockOptions& o, bool with_positions, bool shared_table = false) {
  return {.model = o.width,
          .heads = o.heads,
          .key_heads = o.key_heads,
          .key_width = o.key_width,
          .value_width = o.value_width,
          .bias = o.bias,
          .dropout = o.attention_dropout.value_or(o.dropout),
          .similarity = DotSimilarity{o.scale},
          .positions = with_positions ? o.positions : LayerPositions{},
          .separate = o.separate,
          .biases = o.attention_biases,
          .head_norm = o.head_norm,
          .window = with_positions ? o.window : -1,
          .shared_table = shared_table};
}

// What a sublayer reads of the stream: normalised with pre-norm, as it is with post-norm; in the type of the products.
Tensor read_stream(NormPlace place, const std::optional<Norm>& norm, const Tensor& x, const Pass& pass) {
  return place != NormPlace::after && norm ? (*norm)(x, pass.compute()) : cast(x, pass.compute());
}

// linear2 of a relu's zeros is laid out to skip them.
bool is_sparse(const BlockOptions& options, DType compute) {
  return options.middle == Middle::relu && compute == DType::f32;
}

}  // namespace

Activation activation_of(Middle middle) {
  switch (middle) {
    case Middle::relu: return Activation::relu;
    case Middle::gelu:
    case Middle::geglu: return Activation::gelu;
    case Middle::gelu_tanh:
    case Middle::geglu_tanh: return Activation::gelu_tanh;
    case Middle::silu:
    case Middle::swiglu: return Activation::silu;
    case Middle::quick_gelu: return Activation::quick_gelu;
    case Middle::tanh: return Activation::tanh;
  }
  fail(ErrorKind::invalid_argument, "feed_forward: {} is none of its kinds", static_cast<int>(middle));
}

bool is_gated(Middle middle) {
  return middle == Middle::swiglu || middle == Middle::geglu || middle == Middle::geglu_tanh;
}

FeedForward::FeedForward(const Params& at, const BlockOptions& options)
    : options_(options), linear2_(at / "linear2", options.feed_forward, options.width, options.bias) {
  const bool gated = is_gated(options.middle);
  if (gated && options.separate) {
    gated_.emplace(std::vector<Linear>{Linear(at / "gate", options.width, options.feed_forward, options.bias),
                                       Linear(at / "linear1", options.width, options.feed_forward, options.bias)});
  } else {
    linear1_.emplace(at / "linear1", options.width, options.feed_forward * (gated ? 2 : 1), options.bias);
  }
}

Tensor FeedForward::middle(const Tensor& x, Pass& pass) const {
  const Activation kind = activation_of(options_.middle);
  const DropoutOptions drop = pass.dropout(options_.middle_dropout.value_or(options_.dropout));
  if (gated_) return dropout(gated(gated_->joined(x), kind), drop);
  return is_gated(options_.middle) ? dropout(gated((*linear1_)(x), kind), drop)
                                   : (*linear1_)(x, {.activation = kind, .dropout = drop});
}

Tensor FeedForward::add_to(const Tensor& residual, const Tensor& x, Pass& pass) const {
  const SublayerEnd end{residual, options_.dropout};
  if (options_.middle == Middle::relu) {
    const LinearWeights first = linear1_->weights(x.dtype()), second = linear2_.weights(x.dtype());
    if (recording({x, first.w, second.w, residual})) {
      const DropoutOptions drop = pass.dropout(options_.middle_dropout.value_or(options_.dropout));
      return end_sublayer(end, pass, [&](const Tensor& added) {
        return linear_relu_linear(x, first, second, {drop, added, residual.dtype()});
      });
    }
  }
  const Tensor between = middle(x, pass);
  return linear2_(between, end, pass);
}

void FeedForward::pack(DType compute) {
  if (gated_) gated_->pack(compute);
  if (linear1_) linear1_->pack(compute);
  if (is_sparse(options_, compute)) {
    linear2_.pack_for_zeros();
  } else {
    linear2_.pack(compute);
  }
}

EncoderLayer::EncoderLayer(const Params& at, const BlockOptions& options, bool shared_table)
    : self_attn(at / "self_attn", attention_of(options, true, shared_table)),
      options_(options),
      feed_forward_(at, options) {
  if (options.first_norm) norm1_.emplace(at / "norm1", options.width, options.normalisation);
  norm2_.emplace(at / "norm2", options.width, options.normalisation);
}

Tensor EncoderLayer::ready(const std::optional<Norm>& norm, const Tensor& x, const Pass& pass) const {
  return read_stream(options_.norm, norm, x, pass);
}

Tensor EncoderLayer::ended(const std::optional<Norm>& norm, const Tensor& x) const {
  return options_.norm == NormPlace::after ? (*norm)(x) : x;
}

Tensor EncoderLayer::operator()(const Tensor& x, const Sequences& at, Pass& pass, const AttendOptions& options) const {
  return step(x, pass, [&](const Tensor& rows) {
    return self_attn.attend(self_attn.project(rows, at.positions), at, at, pass, options);
  });
}

void EncoderLayer::pack(DType compute) {
  self_attn.pack(compute, MultiHeadAttention::Use::self);
  feed_forward_.pack(compute);
}

DecoderLayer::DecoderLayer(const Params& at, const BlockOptions& options, bool shared_table)
    : self_attn(at / "self_attn", attention_of(options, true, shared_table)),
      cross_attn(at / "multihead_attn", attention_of(options, false)),
      options_(options),
      feed_forward_(at, options) {
  norm1_.emplace(at / "norm1", options.width, options.normalisation);
  norm2_.emplace(at / "norm2", options.width, options.normalisation);
  norm3_.emplace(at / "norm3", options.width, options.normalisation);
}

Tensor DecoderLayer::ready(const std::optional<Norm>& norm, const Tensor& x, const Pass& pass) const {
  return read_stream(options_.norm, norm, x, pass);
}

Tensor DecoderLayer::ended(const std::optional<Norm>& norm, const Tensor& x) const {
  return options_.norm == NormPlace::after ? (*norm)(x) : x;
}

Tensor DecoderLayer::operator()(const Tensor& x, const Sequences& at, const EncoderOutput& memory, Pass& pass,
                                const AttendOptions& self, const AttendOptions& cross) const {
  AttendOptions own = self;
  own.mask = own.mask & causal();
  return step(
      x, pass,
      [&](const Tensor& rows) { return self_attn.attend(self_attn.project(rows, at.positions), at, at, pass, own); },
      [&](const Tensor& rows) {
        const auto kv = cross_attn.keys_values(memory.rows, memory.rows, memory.at.positions);
        return cross_attn.attend({cross_attn.queries(rows, at.positions), kv.k, kv.v}, at, memory.at, pass, cross);
      });
}

void DecoderLayer::pack(DType compute) {
  self_attn.pack(compute, MultiHeadAttention::Use::self);
  cross_attn.pack(compute, MultiHeadAttention::Use::cross);
  feed_forward_.pack(compute);
}

}  // namespace mh
