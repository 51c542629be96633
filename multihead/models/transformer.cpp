// The model: embeddings, two stacks, the output, and the step over kept keys.
#include "multihead/models/transformer.h"

#include <cmath>

#include "multihead/models/pretrained/stack_of.h"
#include "multihead/nn/positions.h"
#include "multihead/ops/elementwise.h"
#include "multihead/ops/rows/dropout.h"
#include "multihead/ops/rows/embedding.h"
#include "multihead/ops/shape.h"

namespace mh {

namespace detail {

LayerPositions layer_positions(ModelPositions positions, bool decoder) {
  switch (positions) {
    case ModelPositions::rotary: return Rotary{};
    case ModelPositions::alibi: return Alibi{};
    case ModelPositions::t5: return T5Buckets{.bidirectional = !decoder};
    default: return {};
  }
}

}  // namespace detail

namespace {

StackOptions stack_of(const TransformerConfig& c, bool decoder) {
  return {.block = {.width = c.width,
                    .heads = c.heads,
                    .feed_forward = c.feed_forward,
                    .norm = c.norm,
                    .middle = c.middle,
                    .dropout = c.dropout,
                    .positions = detail::layer_positions(c.positions, decoder)},
          .layers = decoder ? c.decoder_layers : c.encoder_layers};
}

const Param& embedding_of(const TransformerConfig& c, ParamStore& store) {
  check(c.vocabulary > 0 && c.width > 0 && c.feed_forward > 0 && c.max_length > 0,
        "Transformer: vocabulary {}, width {}, feed_forward {}, max_length {}; expected all above 0", c.vocabulary,
        c.width, c.feed_forward, c.max_length);
  check(c.encoder_layers >= 0 && c.decoder_layers >= 0,
        "Transformer: {} encoder and {} decoder layers; expected 0 or more", c.encoder_layers, c.decoder_layers);
  return store.make("embedding.weight", {c.vocabulary, c.width}, detail::embedding_init(c.width));
}

Tensor ids_tensor(const std::vector<int32_t>& ids) { return tensor<int32_t>(ids, {static_cast<int64_t>(ids.size())}); }

// Of hypotheses that wrote the same token last: their rows before the first layer are equal, about half of all (Zen 4,
// models/en-de: 1 to 2 % of the time).
RepeatedRows repeats_of(const std::vector<int32_t>& ids, int64_t vocabulary) {
  std::vector<int32_t> place(static_cast<size_t>(vocabulary), -1), first, which;
  for (size_t n = 0; n < ids.size(); ++n) {
    int32_t& at = place[static_cast<size_t>(ids[n])];
    if (at < 0) {
      at = static_cast<int32_t>(first.size());
      first.push_back(static_cast<int32_t>(n));
    }
    which.push_back(at);
  }
  if (first.size() == ids.size()) return {};
  return {ids_tensor(first), ids_tensor(which)};
}

}  // namespace

PairBatch pair_batch(const std::vector<const SentencePair*>& pairs, const TransformerConfig& config) {
  std::vector<int32_t> sources, inputs, labels;
  std::vector<int64_t> source_lengths, target_lengths;
  for (const SentencePair* pair : pairs) {
    const auto& [source, target] = *pair;
    sources.insert(sources.end(), source.begin(), source.end());
    sources.push_back(config.end);
    inputs.push_back(config.begin);
    inputs.insert(inputs.end(), target.begin(), target.end());
    labels.insert(labels.end(), target.begin(), target.end());
    labels.push_back(config.end);
    source_lengths.push_back(static_cast<int64_t>(source.size()) + 1);
    target_lengths.push_back(static_cast<int64_t>(target.size()) + 1);
  }
  return {.source = {ids_tensor(sources), Sequences::of_lengths(source_lengths)},
          .input = {ids_tensor(inputs), Sequences::of_lengths(target_lengths)},
          .labels = ids_tensor(labels)};
}

Transformer::Transformer(const TransformerConfig& config, std::shared_ptr<ParamStore> store)
    : config_(config),
      store_(std::move(store)),
      embedding_(embedding_of(config, *store_)),
      encoder_(Params(*store_) / "encoder", stack_of(config, false)),
      decoder_(Params(*store_) / "decoder", stack_of(config, true)) {
  if (config.positions == ModelPositions::sinusoidal)
    sinusoids_ = sinusoidal_positions(config.max_length, config.width).to(store_->options().device);
  if (config.positions == ModelPositions::learned)
    learned_positions_ = &store_->make("positions.weight", {config.max_length, config.width}, Init::normal(0.02));
  output_weight_ = &embedding_;
  target_embedding_ = &embedding_;
  if (!config.tied) {
    const Shape shape{config.vocabulary, config.width};
    target_embedding_ = &store_->make("target_embedding.weight", shape, detail::embedding_init(config.width));
    output_weight_ = &store_->make("output.weight", shape, detail::embedding_init(config.width));
  }
  output_ = std::make_unique<Linear>(*output_weight_, nullptr, Linear::Part{0, config.vocabulary, 0});
}

Tensor Transformer::embed(const Param& table, const Tensor& ids, const Tensor& positions, Pass& pass) const {
  EmbeddingOptions options{.scale = std::sqrt(static_cast<float>(config_.width))};
  if (sinusoids_) {
    options.positions = sinusoids_;
    options.position_ids = positions;
  }
  Tensor x = embedding(table.value, ids, options);
  if (learned_positions_ != nullptr) x = add(x, embedding(learned_positions_->value, positions));
  return dropout(x, pass.dropout(config_.dropout));
}

EncoderOutput Transformer::encode(const TokenBatch& source, Pass& pass) const {
  check(source.at.longest <= config_.max_length, "encode: a sentence of {} tokens; expected at most {}",
        source.at.longest, config_.max_length);
  return {encoder_(embed(embedding_, source.ids, source.at.positions, pass), source.at, pass), source.at};
}

Tensor Transformer::decode(const TokenBatch& input, const EncoderOutput& memory, Pass& pass) const {
  check(input.at.longest <= config_.max_length, "decode: a sentence of {} tokens; expected at most {}",
        input.at.longest, config_.max_length);
  return decoder_(embed(*target_embedding_, input.ids, input.at.positions, pass), input.at, memory, pass);
}

Tensor Transformer::logits(const Tensor& rows) const { return (*output_)(rows, {.result = DType::f32}); }

TopK Transformer::top_tokens(const Tensor& rows, int64_t k) const {
  return top_ && rows.dtype() == DType::f32 ? linear_top_k(rows, top_, k) : top_k(logits(rows), k);
}

CrossEntropy Transformer::loss(const PairBatch& batch, Pass& pass, float smoothing) const {
  const Tensor rows = decode(batch.input, encode(batch.source, pass), pass);
  return linear_cross_entropy(rows, output_weight_->value, batch.labels, {.smoothing = smoothing});
}

AttentionState Transformer::begin(const EncoderOutput& source, int64_t room, Pass& pass) const {
  AttentionState state(
      {.sequences = source.at.count(), .room = room, .dtype = pass.compute(), .device = store_->options().device});
  for (const DecoderLayer& layer : decoder_.layers()) state.add_layer(layer.self_attn, layer.cross_attn, source);
  return state;
}

Tensor Transformer::step_rows(AttentionState& state, const std::vector<int32_t>& ids, Pass& pass) const {
  check(static_cast<int64_t>(ids.size()) == state.hypotheses(), "step: {} tokens for {} hypotheses", ids.size(),
        state.hypotheses());
  check(state.longest() < config_.max_length, "step: token {} is past the model's length; expected at most {}",
        state.longest() + 1, config_.max_length);
  const Tensor positions = state.positions();
  const Tensor x = embed(*target_embedding_, ids_tensor(ids), positions, pass);
  return decoder_.step(x, positions, state, pass,
                       pass.is_training() ? RepeatedRows() : repeats_of(ids, config_.vocabulary));
}

Tensor Transformer::cross_weights(const TokenBatch& input, const EncoderOutput& memory, int64_t layer,
                                  Pass& pass) const {
  check(layer >= 0 && layer < static_cast<int64_t>(decoder_.layers().size()),
        "cross_weights: layer {} does not exist; expected 0 to {}", layer, decoder_.layers().size() - 1);
  Tensor x = embed(*target_embedding_, input.ids, input.at.positions, pass);
  for (int64_t n = 0; n < layer; ++n) x = decoder_.layers()[static_cast<size_t>(n)](x, input.at, memory, pass);
  const DecoderLayer& here = decoder_.layers()[static_cast<size_t>(layer)];
  Tensor weights;
  here.step(
      x, pass,
      [&](const Tensor& rows) {
        return here.self_attn.attend(here.self_attn.project(rows, input.at.positions), input.at, input.at, pass,
                                     {.mask = causal()});
      },
      [&](const Tensor& rows) {
        const Tensor q = here.cross_attn.queries(rows, input.at.positions);
        const auto kv = here.cross_attn.keys_values(memory.rows, memory.rows, memory.at.positions);
        AttentionOptions options = here.cross_attn.call_options(pass, {});
        options.packed = Packed{input.at.starts, memory.at.starts};
        const AttentionResult result = attention(q, kv.k, kv.v, options);
        weights = attention_weights(q, kv.k, result.lse, options);
        return result.o;
      });
  return weights;
}

void Transformer::pack(DType compute) {
  encoder_.pack(compute);
  decoder_.pack(compute);
  output_->pack(compute);
  top_ = compute == DType::f32 ? prepack_top_k(output_weight_->value.detach()) : TopKWeights();
}

}  // namespace mh
