// The recurrent encoder-decoder: parameters, the source, and the target all at once or token by token.
#include "multihead/models/recurrent_seq2seq.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "multihead/models/pretrained/stack_of.h"
#include "multihead/ops/elementwise.h"
#include "multihead/ops/rows/embedding.h"
#include "multihead/ops/rows/softmax.h"
#include "multihead/ops/shape.h"

namespace mh {

namespace {

constexpr int64_t kMostHidden = 512;  // as wide as a head of attention may be

bool attends(const RecurrentConfig& c) { return c.attention != PairAttention::none; }

const Param& recurrent_embedding(const RecurrentConfig& c, ParamStore& store) {
  check(c.vocabulary > 0 && c.width > 0 && c.hidden > 0 && c.max_length > 0 && c.encoder_layers > 0 &&
            c.decoder_layers > 0,
        "RecurrentSeq2Seq: vocabulary {}, width {}, hidden {}, max_length {}, {} and {} layers; expected all above 0",
        c.vocabulary, c.width, c.hidden, c.max_length, c.encoder_layers, c.decoder_layers);
  check(!attends(c) || (c.hidden % 2 == 0 && c.hidden <= kMostHidden),
        "RecurrentSeq2Seq: hidden is {}; with attention expected an even number, at most {}", c.hidden, kMostHidden);
  return store.make("embedding.weight", {c.vocabulary, c.width}, detail::embedding_init(c.width));
}

RecurrentNetOptions encoder_of(const RecurrentConfig& c) {
  return {.cell = c.cell,
          .input = c.width,
          .width = attends(c) ? c.hidden / 2 : c.hidden,
          .layers = c.encoder_layers,
          .reading = attends(c) ? Reading::both : Reading::backward,
          .dropout = c.dropout};
}

RecurrentNetOptions decoder_of(const RecurrentConfig& c) {
  return {.cell = c.cell,
          .input = c.width + (c.attention == PairAttention::additive ? c.hidden : 0),
          .width = c.hidden,
          .layers = c.decoder_layers,
          .dropout = c.dropout};
}

Tensor numbers(const std::vector<int32_t>& values) {
  return tensor<int32_t>(values, {static_cast<int64_t>(values.size())});
}

// Row n of the result is row parents[n].
RecurrentState chosen(const RecurrentState& state, const Tensor& parents) {
  return {gather(state.h, parents), state.c ? gather(state.c, parents) : Tensor()};
}

// 0, counts[0], counts[0] + counts[1], …
Tensor starts_of(const std::vector<int64_t>& counts) { return Sequences::of_lengths(counts).starts; }

std::vector<int64_t> lengths_in(const Sequences& at) {
  std::vector<int64_t> out;
  const int32_t* start = at.starts.data<int32_t>();
  for (int64_t b = 0; b < at.count(); ++b) out.push_back(start[b + 1] - start[b]);
  return out;
}

// The memory of sentences[n] as that of number n.
RecurrentMemory memory_of(const RecurrentMemory& memory, const std::vector<int64_t>& sentences) {
  const int32_t* start = memory.at.starts.data<int32_t>();
  std::vector<int32_t> rows;
  std::vector<int64_t> lengths;
  for (const int64_t b : sentences) {
    lengths.push_back(start[b + 1] - start[b]);
    for (int32_t row = start[b]; row < start[b + 1]; ++row) rows.push_back(row);
  }
  const Tensor which = numbers(rows);
  return {.rows = gather(memory.rows, which), .keys = gather(memory.keys, which), .at = Sequences::of_lengths(lengths)};
}

// That of the first `count` sentences alone.
RecurrentMemory first_of(const RecurrentMemory& memory, int64_t count) {
  std::vector<int64_t> lengths = lengths_in(memory.at);
  lengths.resize(static_cast<size_t>(count));
  const Sequences at = Sequences::of_lengths(lengths);
  return {.rows = slice(memory.rows, 0, 0, at.rows), .keys = slice(memory.keys, 0, 0, at.rows), .at = at};
}

// Σ p m over each sequence's rows m, p the softmax of their scores: attention whose keys are one number wide.
AttentionResult weighed(const Tensor& scores, const Tensor& rows, const Sequences& at) {
  const Tensor one = full({at.count(), 1, 1}, 1);
  const std::vector<int64_t> single(static_cast<size_t>(at.count()), 1);
  return attention(one, reshape(scores, {at.rows, 1, 1}), reshape(rows, {at.rows, 1, rows.size(1)}),
                   {.similarity = DotSimilarity{.scale = 1.0F}, .packed = Packed{starts_of(single), at.starts}});
}

}  // namespace

void RecurrentHypotheses::choose(const std::vector<int32_t>& parents, const std::vector<int64_t>& kept) {
  const Tensor which = numbers(parents);
  for (RecurrentState& layer : layers) layer = chosen(layer, which);
  if (kept != counts) own = {};
  counts = kept;
}

RecurrentSeq2Seq::RecurrentSeq2Seq(const RecurrentConfig& config, std::shared_ptr<ParamStore> store)
    : config_(config),
      store_(std::move(store)),
      embedding_(recurrent_embedding(config, *store_)),
      target_embedding_(&embedding_),
      output_weight_(&embedding_),
      encoder_(Params(*store_) / "encoder", encoder_of(config)),
      decoder_(Params(*store_) / "decoder", decoder_of(config)) {
  const Params root(*store_), attention = root / "attention";
  if (attends(config)) query_ = std::make_unique<Linear>(attention / "query", config.hidden, config.hidden, false);
  if (additive()) {
    key_ = std::make_unique<Linear>(attention / "key", config.hidden, config.hidden, false);
    score_ = &attention.make("score.weight", {1, config.hidden}, Init::xavier());
  }
  readout_ = std::make_unique<Linear>(root / "readout", (attends(config) ? 2 : 1) * config.hidden, config.width);
  if (!config.tied) {
    const Shape shape{config.vocabulary, config.width};
    target_embedding_ = &store_->make("target_embedding.weight", shape, detail::embedding_init(config.width));
    output_weight_ = &store_->make("output.weight", shape, detail::embedding_init(config.width));
  }
  output_ = std::make_unique<Linear>(*output_weight_, nullptr, Linear::Part{0, config.vocabulary, 0});
}

Tensor RecurrentSeq2Seq::embed(const Param& table, const Tensor& ids, Pass& pass) const {
  const Tensor x = embedding(table.value, ids, {.scale = std::sqrt(static_cast<float>(config_.width))});
  return dropout(x, pass.dropout(config_.dropout));
}

Tensor RecurrentSeq2Seq::keys(const Tensor& rows, Pass& pass) const {
  return additive() ? (*key_)(cast(rows, pass.compute()), {.result = DType::f32}) : rows;
}

RecurrentMemory RecurrentSeq2Seq::encode(const TokenBatch& source, Pass& pass) const {
  check(source.at.longest <= config_.max_length, "encode: a sentence of {} tokens; expected at most {}",
        source.at.longest, config_.max_length);
  const auto read = encoder_(embed(embedding_, source.ids, pass), source.at, pass);
  RecurrentMemory out{.at = source.at};
  if (attends(config_)) {
    out.rows = read.rows;
    out.keys = keys(read.rows, pass);
  }
  const auto directions = static_cast<size_t>(encoder_.options().directions());
  for (size_t layer = 0; layer < static_cast<size_t>(config_.decoder_layers); ++layer) {
    const size_t n = layer * directions;
    if (n >= read.end.size()) {
      const Tensor none = zeros({source.at.count(), config_.hidden});
      out.start.push_back({none, config_.cell == Cell::lstm ? none : Tensor()});
    } else if (directions == 1) {
      out.start.push_back(read.end[n]);
    } else {
      const RecurrentState &ahead = read.end[n], &back = read.end[n + 1];
      out.start.push_back({concat({ahead.h, back.h}, 1), ahead.c ? concat({ahead.c, back.c}, 1) : Tensor()});
    }
  }
  return out;
}

// What multiplicative attention finds for rows h, those of sentence b at starts[b].
Tensor RecurrentSeq2Seq::found(const Tensor& h, const RecurrentMemory& memory, const Tensor& starts, Pass& pass,
                               Tensor* weights) const {
  const Tensor q = (*query_)(cast(h, pass.compute()), {.result = DType::f32});
  const auto one_head = [&](const Tensor& x) { return reshape(x, {x.size(0), 1, config_.hidden}); };
  const AttentionOptions options{.similarity = DotSimilarity{.scale = 1.0F},
                                 .packed = Packed{starts, memory.at.starts}};
  const AttentionResult result = attention(one_head(q), one_head(memory.keys), one_head(memory.rows), options);
  if (weights != nullptr) *weights = attention_weights(one_head(q), one_head(memory.keys), result.lse, options);
  return reshape(result.o, {h.size(0), config_.hidden});
}

Tensor RecurrentSeq2Seq::finish(const Tensor& h, const Tensor& context, Pass& pass) const {
  const Tensor x = cast(context ? concat({h, context}, 1) : h, pass.compute());
  return dropout((*readout_)(x, {.activation = context ? Activation::tanh : Activation::none, .result = DType::f32}),
                 pass.dropout(config_.dropout));
}

// One step with additive attention, of as many sentences as `embedded` has rows; `layers` are taken on.
RecurrentSeq2Seq::Fed RecurrentSeq2Seq::feed(const Tensor& embedded, const RecurrentMemory& memory,
                                             std::vector<RecurrentState>& layers, Pass& pass, Tensor* weights) const {
  const Tensor q = (*query_)(cast(layers.back().h, pass.compute()), {.result = DType::f32});
  const Tensor scores = additive_scores(q, memory.keys, reshape(score_->value, {config_.hidden}), memory.at.starts);
  if (weights != nullptr) *weights = softmax(scores);
  const Tensor context = reshape(weighed(scores, memory.rows, memory.at).o, {embedded.size(0), config_.hidden});
  const auto out = decoder_(concat({embedded, context}, 1), Sequences::uniform(embedded.size(0), 1), pass, layers);
  layers = out.end;
  return {out.rows, context};
}

// With additive attention every step waits for the one before: sentences side by side, longest first, so that those
// that have ended are the last.
Tensor RecurrentSeq2Seq::decode_fed(const TokenBatch& input, const RecurrentMemory& memory, Pass& pass,
                                    Tensor* weights) const {
  const std::vector<int64_t> lengths = lengths_in(input.at);
  std::vector<int64_t> order(lengths.size()), steps;
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return lengths[static_cast<size_t>(a)] > lengths[static_cast<size_t>(b)];
  });
  std::vector<int32_t> by_step, place(static_cast<size_t>(input.at.rows));
  const int32_t* start = input.at.starts.data<int32_t>();
  for (int32_t t = 0; t < input.at.longest; ++t) {
    const size_t before = by_step.size();
    for (const int64_t b : order) {
      if (lengths[static_cast<size_t>(b)] <= t) break;
      place[static_cast<size_t>(start[b] + t)] = static_cast<int32_t>(by_step.size());
      by_step.push_back(start[b] + t);
    }
    steps.push_back(static_cast<int64_t>(by_step.size() - before));
  }
  std::vector<int32_t> sentences(order.begin(), order.end());
  std::vector<RecurrentState> layers = memory.start;
  for (RecurrentState& each : layers) each = chosen(each, numbers(sentences));
  RecurrentMemory active = memory_of(memory, order);
  const std::vector<Tensor> embedded =
      split(gather(embed(*target_embedding_, input.ids, pass), numbers(by_step)), 0, steps);
  std::vector<Tensor> h, context, looked;
  for (size_t t = 0; t < steps.size(); ++t) {
    if (steps[t] < active.at.count()) {
      active = first_of(active, steps[t]);
      for (RecurrentState& each : layers)
        each = {slice(each.h, 0, 0, steps[t]), each.c ? slice(each.c, 0, 0, steps[t]) : Tensor()};
    }
    Tensor p;
    const Fed fed = feed(embedded[t], active, layers, pass, weights != nullptr ? &p : nullptr);
    h.push_back(fed.h);
    context.push_back(fed.context);
    if (p) looked.push_back(reshape(p, {1, 1, p.count()}));
  }
  if (weights != nullptr) *weights = concat(looked, 1);
  return gather(finish(concat(h, 0), concat(context, 0), pass), numbers(place));
}

Tensor RecurrentSeq2Seq::decode(const TokenBatch& input, const RecurrentMemory& memory, Pass& pass) const {
  check(input.at.longest <= config_.max_length, "decode: a sentence of {} tokens; expected at most {}",
        input.at.longest, config_.max_length);
  if (input.at.rows == 0) return zeros({0, config_.width});
  if (additive()) return decode_fed(input, memory, pass);
  const Tensor h = decoder_(embed(*target_embedding_, input.ids, pass), input.at, pass, memory.start).rows;
  return finish(h, attends(config_) ? found(h, memory, input.at.starts, pass, nullptr) : Tensor(), pass);
}

Tensor RecurrentSeq2Seq::logits(const Tensor& rows) const { return (*output_)(rows, {.result = DType::f32}); }

TopK RecurrentSeq2Seq::top_tokens(const Tensor& rows, int64_t k) const {
  return top_ ? linear_top_k(rows, top_, k) : top_k(logits(rows), k);
}

CrossEntropy RecurrentSeq2Seq::loss(const PairBatch& batch, Pass& pass, float smoothing) const {
  const Tensor rows = decode(batch.input, encode(batch.source, pass), pass);
  return linear_cross_entropy(cast(rows, pass.compute()), output_weight_->value, batch.labels,
                              {.smoothing = smoothing});
}

RecurrentHypotheses RecurrentSeq2Seq::begin(RecurrentMemory memory) const {
  RecurrentHypotheses out;
  out.layers = memory.start;
  out.counts.assign(static_cast<size_t>(memory.at.count()), 1);
  out.memory = std::move(memory);
  return out;
}

Tensor RecurrentSeq2Seq::step_rows(RecurrentHypotheses& state, const std::vector<int32_t>& ids, Pass& pass) const {
  const auto count = static_cast<int64_t>(ids.size());
  check(count == state.count(), "step: {} tokens for {} hypotheses", ids.size(), state.count());
  check(state.written < config_.max_length, "step: token {} is past the model's length; expected at most {}",
        state.written + 1, config_.max_length);
  ++state.written;
  const Tensor x = embed(*target_embedding_, numbers(ids), pass);
  if (additive()) {
    if (!state.own.rows) {
      std::vector<int64_t> sentences;
      for (size_t b = 0; b < state.counts.size(); ++b)
        sentences.insert(sentences.end(), static_cast<size_t>(state.counts[b]), static_cast<int64_t>(b));
      state.own = memory_of(state.memory, sentences);
    }
    const Fed fed = feed(x, state.own, state.layers, pass);
    return finish(fed.h, fed.context, pass);
  }
  const auto out = decoder_(x, Sequences::uniform(count, 1), pass, state.layers);
  state.layers = out.end;
  const Tensor context =
      attends(config_) ? found(out.rows, state.memory, starts_of(state.counts), pass, nullptr) : Tensor();
  return finish(out.rows, context, pass);
}

Tensor RecurrentSeq2Seq::attention_of(const TokenBatch& input, const RecurrentMemory& memory, Pass& pass) const {
  check(attends(config_),
        "attention_of: the model was trained without attention; expected model.attention to name one");
  check(input.at.count() == 1, "attention_of: {} sentences; expected one", input.at.count());
  Tensor weights;
  if (additive()) {
    decode_fed(input, memory, pass, &weights);
    return weights;
  }
  const Tensor h = decoder_(embed(*target_embedding_, input.ids, pass), input.at, pass, memory.start).rows;
  found(h, memory, input.at.starts, pass, &weights);
  return weights.select(0, 0);
}

void RecurrentSeq2Seq::pack(DType compute) {
  encoder_.pack(compute);
  decoder_.pack(compute);
  for (const auto* each : {&query_, &key_, &readout_, &output_})
    if (*each) (*each)->pack(compute);
  top_ = compute == DType::f32 ? prepack_top_k(output_weight_->value.detach()) : TopKWeights();
}

}  // namespace mh
