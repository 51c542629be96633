// The model: embeddings, two stacks, the output, and the step over kept keys.
#include "multihead/models/transformer.h"

#include <bit>
#include <cmath>
#include <utility>

#include "multihead/nn/positions.h"
#include "multihead/ops/dropout.h"
#include "multihead/ops/elementwise.h"
#include "multihead/ops/embedding.h"
#include "multihead/ops/shape.h"

namespace mh {

namespace {

// Keys of a page: small, so that hypotheses that part ways copy little and what is read lies dense (Zen 4, greedy: 2 of
// 100 of the time against pages of 16); as many as attention takes at a time.
constexpr int64_t kPage = 4;

LayerPositions layer_positions(ModelPositions positions, bool decoder) {
  switch (positions) {
    case ModelPositions::rotary: return Rotary{};
    case ModelPositions::alibi: return Alibi{};
    case ModelPositions::t5: return T5Buckets{.bidirectional = !decoder};
    default: return {};
  }
}

StackOptions stack_of(const TransformerConfig& c, bool decoder) {
  return {.block = {.width = c.width,
                    .heads = c.heads,
                    .feed_forward = c.feed_forward,
                    .norm = c.norm,
                    .middle = c.middle,
                    .dropout = c.dropout,
                    .positions = layer_positions(c.positions, decoder)},
          .layers = decoder ? c.decoder_layers : c.encoder_layers};
}

Init embedding_init(const TransformerConfig& c) { return Init::normal(1 / std::sqrt(static_cast<double>(c.width))); }

const Param& embedding_of(const TransformerConfig& c, ParamStore& store) {
  check(c.vocabulary > 0 && c.width > 0 && c.feed_forward > 0 && c.max_length > 0,
        "Transformer: vocabulary {}, width {}, feed_forward {}, max_length {}; expected all above 0", c.vocabulary,
        c.width, c.feed_forward, c.max_length);
  check(c.encoder_layers >= 0 && c.decoder_layers >= 0,
        "Transformer: {} encoder and {} decoder layers; expected 0 or more", c.encoder_layers, c.decoder_layers);
  return store.make("embedding.weight", {c.vocabulary, c.width}, embedding_init(c));
}

Tensor ids_tensor(const std::vector<int32_t>& ids) { return tensor<int32_t>(ids, {static_cast<int64_t>(ids.size())}); }

// Of hypotheses that wrote the same token last: their rows before the first layer are equal, about half of all (Zen 4,
// models/en-de: 1 to 2 of 100 of the time).
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

// (rows, H, D) as (rows, H, 1, D): one query or key per hypothesis.
Tensor one_each(const Tensor& rows) { return rows.unsqueeze(2); }

}  // namespace

TokenBatch token_batch(const std::vector<std::vector<int32_t>>& sentences) {
  std::vector<int32_t> all;
  std::vector<int64_t> lengths;
  for (const auto& sentence : sentences) {
    all.insert(all.end(), sentence.begin(), sentence.end());
    lengths.push_back(static_cast<int64_t>(sentence.size()));
  }
  return {ids_tensor(all), Sequences::of_lengths(lengths)};
}

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
    sinusoids_ = sinusoidal_positions(config.max_length, config.width);
  if (config.positions == ModelPositions::learned)
    learned_positions_ = &store_->make("positions.weight", {config.max_length, config.width}, Init::normal(0.02));
  written_ = &embedding_;
  target_embedding_ = &embedding_;
  if (!config.tied) {
    target_embedding_ =
        &store_->make("target_embedding.weight", {config.vocabulary, config.width}, embedding_init(config));
    written_ = &store_->make("output.weight", {config.vocabulary, config.width}, embedding_init(config));
  }
  output_ = std::make_unique<Linear>(*written_, nullptr, Linear::Part{0, config.vocabulary, 0});
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

Memory Transformer::encode(const TokenBatch& source, Pass& pass) const {
  check(source.at.longest <= config_.max_length, "encode: a sentence of {} tokens; expected at most {}",
        source.at.longest, config_.max_length);
  return {encoder_(embed(embedding_, source.ids, source.at.positions, pass), source.at, pass), source.at};
}

Tensor Transformer::decode(const TokenBatch& input, const Memory& memory, Pass& pass) const {
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
  return linear_cross_entropy(rows, written_->value, batch.labels, {.smoothing = smoothing});
}

// Whole pages of each hypothesis, and of one that is copied before its like is left.
int64_t Transformer::room(int64_t sentences, int64_t width, int64_t longest) {
  return sentences * (width + 1) * ((longest + kPage - 1) / kPage * kPage);
}

DecoderState Transformer::begin(const Memory& memory, int64_t room, Pass& pass) const {
  DecoderState state;
  state.memory_at_ = memory.at;
  const int64_t sentences = memory.at.count();
  state.owners_ = Sequences::uniform(sentences, 1);
  state.hypotheses_ = sentences;
  // A power of two: calls of like size then ask for the same memory again, which lies ready. Room that is not used
  // costs addresses alone.
  const auto capacity = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(room)));
  for (const DecoderLayer& layer : decoder_.layers()) {
    const MultiHeadAttentionOptions& o = layer.self_attn.options();
    state.caches_.emplace_back(KVCacheOptions{.batch = sentences,
                                              .key_heads = o.key_heads,
                                              .key_width = o.key_width,
                                              .value_width = o.value_width,
                                              .capacity = capacity,
                                              .dtype = pass.compute(),
                                              .page = kPage});
    state.crossed_.push_back(layer.cross_attn.keys_values(memory.rows, memory.rows, memory.at.positions));
  }
  return state;
}

void DecoderState::choose(const std::vector<int32_t>& parents, const std::vector<int64_t>& sentences) {
  check(static_cast<int64_t>(sentences.size()) == memory_at_.count(), "choose: numbers for {} sentences; expected {}",
        sentences.size(), memory_at_.count());
  owners_ = Sequences::of_lengths(sentences);
  check(owners_.rows == static_cast<int64_t>(parents.size()), "choose: {} hypotheses for {} places", parents.size(),
        owners_.rows);
  for (KVCache& cache : caches_) cache.choose(parents);
  hypotheses_ = owners_.rows;
}

Tensor Transformer::step_rows(DecoderState& state, const std::vector<int32_t>& ids, Pass& pass) const {
  check(static_cast<int64_t>(ids.size()) == state.hypotheses_, "step: {} tokens for {} hypotheses", ids.size(),
        state.hypotheses_);
  check(state.step_ < config_.max_length, "step: token {} is past the model's length; expected at most {}",
        state.step_ + 1, config_.max_length);
  const Tensor positions = full({state.hypotheses_}, static_cast<double>(state.step_), DType::i32);
  Tensor x = embed(*target_embedding_, ids_tensor(ids), positions, pass);
  RepeatedRows repeats = pass.is_training() ? RepeatedRows() : repeats_of(ids, config_.vocabulary);
  for (size_t n = 0; n < decoder_.layers().size(); ++n) {
    const DecoderLayer& layer = decoder_.layers()[n];
    x = layer.step(
        x, pass,
        [&](const Tensor& rows) {
          const MultiHeadAttention::Heads heads = layer.self_attn.project(rows, positions, std::exchange(repeats, {}));
          state.caches_[n].append(one_each(heads.k), one_each(heads.v));
          const Tensor o = attention(one_each(heads.q), state.caches_[n], layer.self_attn.call_options(pass, {})).o;
          return o.reshape({o.size(0), o.size(1), o.size(3)});
        },
        [&](const Tensor& rows) {
          const MultiHeadAttention::KeysValues& kv = state.crossed_[n];
          return layer.cross_attn.attend({layer.cross_attn.queries(rows, positions), kv.k, kv.v}, state.owners_,
                                         state.memory_at_, pass, {});
        });
  }
  ++state.step_;
  return decoder_.finish(x, pass);
}

Tensor Transformer::cross_weights(const TokenBatch& input, const Memory& memory, int64_t layer, Pass& pass) const {
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
  top_ = compute == DType::f32 ? prepack_top_k(written_->value.detach()) : TopKWeights();
}

}  // namespace mh
