// Runs encoder and decoder layers, whole sequences at a time or step by step, and stacks of them.
#include "multihead/nn/blocks.h"

#include <functional>
#include <memory>
#include <utility>

#include "multihead/autograd/recompute.h"
#include "multihead/autograd/tape.h"
#include "multihead/ops/activation.h"
#include "multihead/ops/dropout.h"
#include "multihead/ops/elementwise.h"

namespace mh {

namespace {

MultiHeadAttentionOptions attention_of(const BlockOptions& o, bool with_positions) {
  return {.model = o.width,
          .heads = o.heads,
          .key_heads = o.key_heads,
          .key_width = o.key_width,
          .value_width = o.value_width,
          .bias = o.bias,
          .dropout = o.dropout,
          .positions = with_positions ? o.positions : LayerPositions{}};
}

bool is_gated(Middle middle) { return middle == Middle::swiglu || middle == Middle::geglu; }

Activation activation_of(Middle middle) {
  switch (middle) {
    case Middle::relu: return Activation::relu;
    case Middle::gelu:
    case Middle::geglu: return Activation::gelu;
    case Middle::gelu_tanh: return Activation::gelu_tanh;
    case Middle::swiglu: return Activation::silu;
  }
  fail(ErrorKind::invalid_argument, "feed_forward: {} is none of its kinds", static_cast<int>(middle));
}

// What a sublayer reads of the stream: normalised with pre-norm, as it is with post-norm; in the type of the products.
Tensor read_stream(NormPlace place, const Norm& norm, const Tensor& x, const Pass& pass) {
  return place == NormPlace::before ? norm(x, pass.compute()) : cast(x, pass.compute());
}

using LayerCall = std::function<Tensor(const std::vector<Tensor>& inputs, Pass& pass)>;

// The layer, run now; with `again` only its inputs are kept. Both runs draw the same random numbers.
Tensor layer_call(bool again, const std::vector<Tensor>& inputs, const std::vector<Tensor>& params, Pass& pass,
                  const LayerCall& call) {
  if (!again) return call(inputs, pass);
  const auto after = std::make_shared<Pass>(pass);
  const Tensor y = recompute(inputs, params, [before = pass, after, call](const std::vector<Tensor>& in) {
    Pass drawn = before;
    const Tensor out = call(in, drawn);
    *after = drawn;
    return out;
  });
  pass = *after;
  return y;
}

}  // namespace

FeedForward::FeedForward(const Params& at, const BlockOptions& options)
    : options_(options),
      linear1_(at / "linear1", options.width, options.feed_forward * (is_gated(options.middle) ? 2 : 1), options.bias),
      linear2_(at / "linear2", options.feed_forward, options.width, options.bias) {}

Tensor FeedForward::add_to(const Tensor& residual, const Tensor& x, Pass& pass) const {
  const Activation kind = activation_of(options_.middle);
  const DropoutOptions drop = pass.dropout(options_.dropout);
  const SublayerEnd end{residual, options_.dropout};
  if (kind == Activation::relu) {
    const LinearWeights first = linear1_.weights(x.dtype()), second = linear2_.weights(x.dtype());
    if (recording({x, first.w, second.w, residual})) {
      return end_sublayer(end, pass, [&](const Tensor& added) {
        return linear_relu_linear(x, first, second, {drop, added, residual.dtype()});
      });
    }
  }
  const Tensor middle = is_gated(options_.middle) ? dropout(gated(linear1_(x), kind), drop)
                                                  : linear1_(x, {.activation = kind, .dropout = drop});
  return linear2_(middle, end, pass);
}

void FeedForward::pack(DType compute) {
  linear1_.pack(compute);
  if (options_.middle == Middle::relu && compute == DType::f32) {
    linear2_.pack_for_zeros();
  } else {
    linear2_.pack(compute);
  }
}

EncoderLayer::EncoderLayer(const Params& at, const BlockOptions& options)
    : self_attn(at / "self_attn", attention_of(options, true)),
      options_(options),
      feed_forward_(at, options),
      norm1_(at / "norm1", options.width, options.normalisation),
      norm2_(at / "norm2", options.width, options.normalisation) {}

Tensor EncoderLayer::ready(const Norm& norm, const Tensor& x, const Pass& pass) const {
  return read_stream(options_.norm, norm, x, pass);
}

Tensor EncoderLayer::ended(const Norm& norm, const Tensor& x) const {
  return options_.norm == NormPlace::after ? norm(x) : x;
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

DecoderLayer::DecoderLayer(const Params& at, const BlockOptions& options)
    : self_attn(at / "self_attn", attention_of(options, true)),
      cross_attn(at / "multihead_attn", attention_of(options, false)),
      options_(options),
      feed_forward_(at, options),
      norm1_(at / "norm1", options.width, options.normalisation),
      norm2_(at / "norm2", options.width, options.normalisation),
      norm3_(at / "norm3", options.width, options.normalisation) {}

Tensor DecoderLayer::ready(const Norm& norm, const Tensor& x, const Pass& pass) const {
  return read_stream(options_.norm, norm, x, pass);
}

Tensor DecoderLayer::ended(const Norm& norm, const Tensor& x) const {
  return options_.norm == NormPlace::after ? norm(x) : x;
}

Tensor DecoderLayer::operator()(const Tensor& x, const Sequences& at, const EncoderOutput& memory, Pass& pass,
                                const Tensor& self_head_mask, const Tensor& cross_head_mask) const {
  return step(
      x, pass,
      [&](const Tensor& rows) {
        return self_attn.attend(self_attn.project(rows, at.positions), at, at, pass,
                                {.mask = causal(), .head_mask = self_head_mask});
      },
      [&](const Tensor& rows) {
        const auto kv = cross_attn.keys_values(memory.rows, memory.rows, memory.at.positions);
        return cross_attn.attend({cross_attn.queries(rows, at.positions), kv.k, kv.v}, at, memory.at, pass,
                                 {.head_mask = cross_head_mask});
      });
}

void DecoderLayer::pack(DType compute) {
  self_attn.pack(compute, MultiHeadAttention::Use::self);
  cross_attn.pack(compute, MultiHeadAttention::Use::cross);
  feed_forward_.pack(compute);
}

Encoder::Encoder(const Params& at, const StackOptions& options) : options_(options) {
  for (int64_t n = 0; n < options.layers; ++n) {
    const Params here = at / "layers" / n;
    layers_.emplace_back(here, options.block);
    params_.push_back(here.store().below(here.path()));
  }
  if (options.last_norm) norm_.emplace(at / "norm", options.block.width, options.block.normalisation);
}

Tensor Encoder::operator()(Tensor x, const Sequences& at, Pass& pass, const AttendOptions& options) const {
  AttendOptions each = options;
  if (options_.causal) each.mask = each.mask & causal();
  for (size_t n = 0; n < layers_.size(); ++n) {
    x = layer_call(options_.recompute, {x}, params_[n], pass,
                   [&layer = layers_[n], at, each](const std::vector<Tensor>& in, Pass& drawn) {
                     return layer(in[0], at, drawn, each);
                   });
  }
  return finish(x, pass);
}

Tensor Encoder::begin(Tensor x, const Sequences& at, AttentionState& state, Pass& pass) const {
  check(options_.causal, "begin: the stack is not causal; expected one in which no row sees later ones");
  for (size_t n = 0; n < layers_.size(); ++n) {
    const MultiHeadAttention& module = layers_[n].self_attn;
    x = layers_[n].step(x, pass, [&](const Tensor& rows) {
      const MultiHeadAttention::Heads heads = module.project(rows, at.positions);
      state.keep(n, heads, at);
      return module.attend(heads, at, at, pass, {.mask = causal()});
    });
  }
  state.advance(at);
  return finish(x, pass);
}

Tensor Encoder::step(Tensor x, const Tensor& positions, AttentionState& state, Pass& pass) const {
  check(options_.causal, "step: the stack is not causal; expected one in which no row sees later ones");
  for (size_t n = 0; n < layers_.size(); ++n) {
    const MultiHeadAttention& module = layers_[n].self_attn;
    x = layers_[n].step(x, pass, [&](const Tensor& rows) {
      return state.self_attend(n, module, module.project(rows, positions), pass);
    });
  }
  state.advance();
  return finish(x, pass);
}

Tensor Encoder::finish(const Tensor& x, const Pass& pass) const {
  return norm_ ? (*norm_)(x, pass.compute()) : cast(x, pass.compute());
}

void Encoder::pack(DType compute) {
  for (EncoderLayer& layer : layers_) layer.pack(compute);
}

Decoder::Decoder(const Params& at, const StackOptions& options) : options_(options) {
  for (int64_t n = 0; n < options.layers; ++n) {
    const Params here = at / "layers" / n;
    layers_.emplace_back(here, options.block);
    params_.push_back(here.store().below(here.path()));
  }
  if (options.last_norm) norm_.emplace(at / "norm", options.block.width, options.block.normalisation);
}

Tensor Decoder::operator()(Tensor x, const Sequences& at, const EncoderOutput& memory, Pass& pass) const {
  for (size_t n = 0; n < layers_.size(); ++n) {
    x = layer_call(options_.recompute, {x, memory.rows}, params_[n], pass,
                   [&layer = layers_[n], at, memory_at = memory.at](const std::vector<Tensor>& in, Pass& drawn) {
                     return layer(in[0], at, {in[1], memory_at}, drawn);
                   });
  }
  return finish(x, pass);
}

Tensor Decoder::step(Tensor x, const Tensor& positions, AttentionState& state, Pass& pass, RepeatedRows repeats) const {
  for (size_t n = 0; n < layers_.size(); ++n) {
    const DecoderLayer& layer = layers_[n];
    x = layer.step(
        x, pass,
        [&](const Tensor& rows) {
          const auto heads = layer.self_attn.project(rows, positions, std::exchange(repeats, {}));
          return state.self_attend(n, layer.self_attn, heads, pass);
        },
        [&](const Tensor& rows) {
          return state.cross_attend(n, layer.cross_attn, layer.cross_attn.queries(rows, positions), pass);
        });
  }
  state.advance();
  return finish(x, pass);
}

Tensor Decoder::finish(const Tensor& x, const Pass& pass) const {
  return norm_ ? (*norm_)(x, pass.compute()) : cast(x, pass.compute());
}

void Decoder::pack(DType compute) {
  for (DecoderLayer& layer : layers_) layer.pack(compute);
}

}  // namespace mh
