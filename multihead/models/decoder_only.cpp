// Embeddings, one causal stack, the output, and the step over kept keys of a decoder-only Transformer.
#include "multihead/models/decoder_only.h"

#include <cmath>

#include "multihead/models/pretrained/stack_of.h"
#include "multihead/nn/positions.h"
#include "multihead/ops/elementwise.h"
#include "multihead/ops/rows/dropout.h"
#include "multihead/ops/rows/embedding.h"

namespace mh {

namespace {

StackOptions causal_stack(const DecoderOnlyConfig& c) {
  check(c.layers > 0, "DecoderOnly: {} layers; expected 1 or more", c.layers);
  return {.block = {.width = c.width,
                    .heads = c.heads,
                    .feed_forward = c.feed_forward,
                    .norm = c.norm,
                    .middle = c.middle,
                    .dropout = c.dropout,
                    .positions = detail::layer_positions(c.positions, true)},
          .layers = c.layers,
          .causal = true};
}

const Param& token_table(const DecoderOnlyConfig& c, ParamStore& store) {
  check(c.vocabulary > 0 && c.width > 0 && c.feed_forward > 0 && c.max_length > 0,
        "DecoderOnly: vocabulary {}, width {}, feed_forward {}, max_length {}; expected all above 0", c.vocabulary,
        c.width, c.feed_forward, c.max_length);
  return store.make("embedding.weight", {c.vocabulary, c.width}, detail::embedding_init(c.width));
}

}  // namespace

DecoderOnlyConfig decoder_only_config(const TransformerConfig& c) {
  return {.vocabulary = c.vocabulary,
          .width = c.width,
          .heads = c.heads,
          .feed_forward = c.feed_forward,
          .layers = c.decoder_layers,
          .norm = c.norm,
          .middle = c.middle,
          .positions = c.positions,
          .dropout = c.dropout,
          .tied = c.tied,
          .max_length = c.max_length,
          .begin = c.begin,
          .end = c.end};
}

DecoderOnly::DecoderOnly(const DecoderOnlyConfig& config, std::shared_ptr<ParamStore> store)
    : config_(config),
      store_(std::move(store)),
      embedding_(token_table(config, *store_)),
      output_weight_(&embedding_),
      stack_(Params(*store_) / "decoder", causal_stack(config)) {
  if (config.positions == ModelPositions::sinusoidal)
    sinusoids_ = sinusoidal_positions(config.max_length, config.width).to(store_->options().device);
  if (config.positions == ModelPositions::learned)
    learned_positions_ = &store_->make("positions.weight", {config.max_length, config.width}, Init::normal(0.02));
  if (!config.tied)
    output_weight_ =
        &store_->make("output.weight", {config.vocabulary, config.width}, detail::embedding_init(config.width));
  output_ = std::make_unique<Linear>(*output_weight_, nullptr, Linear::Part{0, config.vocabulary, 0});
}

Tensor DecoderOnly::embed(const Tensor& ids, const Tensor& positions, Pass& pass) const {
  EmbeddingOptions options{};
  if (sinusoids_) {
    options.scale = std::sqrt(static_cast<float>(config_.width));
    options.positions = sinusoids_;
    options.position_ids = positions;
  }
  Tensor x = embedding(embedding_.value, ids, options);
  if (learned_positions_ != nullptr) x = add(x, embedding(learned_positions_->value, positions));
  return dropout(x, pass.dropout(config_.dropout));
}

Tensor DecoderOnly::hidden(const TokenBatch& input, Pass& pass) const {
  check(input.at.longest <= config_.max_length, "DecoderOnly: a sequence of {} tokens; expected at most {}",
        input.at.longest, config_.max_length);
  return stack_(embed(input.ids, input.at.positions, pass), input.at, pass);
}

Tensor DecoderOnly::logits(const Tensor& hidden) const { return (*output_)(hidden, {.result = DType::f32}); }

CrossEntropy DecoderOnly::loss(const TokenBatch& input, const Tensor& labels, Pass& pass, float smoothing) const {
  return linear_cross_entropy(hidden(input, pass), output_weight_->value, labels, {.smoothing = smoothing});
}

TopK DecoderOnly::top_tokens(const Tensor& hidden, int64_t k) const {
  return top_ && hidden.dtype() == DType::f32 ? linear_top_k(hidden, top_, k) : top_k(logits(hidden), k);
}

AttentionState DecoderOnly::begin(const TokenBatch& prompts, int64_t room, Pass& pass) const {
  check(prompts.at.longest <= config_.max_length, "begin: a prompt of {} tokens; expected at most {}",
        prompts.at.longest, config_.max_length);
  AttentionState state(
      {.sequences = prompts.at.count(), .room = room, .dtype = pass.compute(), .device = store_->options().device});
  for (const EncoderLayer& layer : stack_.layers()) state.add_layer(layer.self_attn);
  if (prompts.at.rows > 0) stack_.begin(embed(prompts.ids, prompts.at.positions, pass), prompts.at, state, pass);
  return state;
}

Tensor DecoderOnly::step(AttentionState& state, const std::vector<int32_t>& ids, Pass& pass) const {
  check(static_cast<int64_t>(ids.size()) == state.hypotheses(), "step: {} tokens for {} hypotheses", ids.size(),
        state.hypotheses());
  check(state.longest() < config_.max_length, "step: token {} is past the model's length; expected at most {}",
        state.longest() + 1, config_.max_length);
  const Tensor positions = state.positions();
  return stack_.step(embed(tensor<int32_t>(ids, {state.hypotheses()}), positions, pass), positions, state, pass);
}

void DecoderOnly::pack(DType compute) {
  stack_.pack(compute);
  output_->pack(compute);
  top_ = compute == DType::f32 ? prepack_top_k(output_weight_->value.detach()) : TopKWeights();
}

}  // namespace mh
