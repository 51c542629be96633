// Embedding, a causal stack and the output, and texts drawn from them.
#include "multihead/tasks/causal_model.h"

#include <algorithm>
#include <cmath>

#include "multihead/base/error.h"
#include "multihead/base/random.h"
#include "multihead/nn/positions.h"
#include "multihead/ops/dropout.h"
#include "multihead/ops/elementwise.h"
#include "multihead/ops/embedding.h"
#include "multihead/ops/softmax.h"

namespace mh {

namespace {

Init table_init(const TransformerConfig& c) { return Init::normal(1 / std::sqrt(static_cast<double>(c.width))); }

const Param& token_table(const TransformerConfig& c, ParamStore& store) {
  check(c.vocabulary > 0 && c.width > 0 && c.feed_forward > 0 && c.max_length > 0 && c.decoder_layers > 0,
        "CausalModel: vocabulary {}, width {}, feed_forward {}, max_length {}, {} layers; expected all above 0",
        c.vocabulary, c.width, c.feed_forward, c.max_length, c.decoder_layers);
  return store.make("embedding.weight", {c.vocabulary, c.width}, table_init(c));
}

LayerPositions positions_of_layers(ModelPositions positions) {
  switch (positions) {
    case ModelPositions::rotary: return Rotary{};
    case ModelPositions::alibi: return Alibi{};
    case ModelPositions::t5: return T5Buckets{.bidirectional = false};
    default: return {};
  }
}

StackOptions causal_stack(const TransformerConfig& c) {
  return {.block = {.width = c.width,
                    .heads = c.heads,
                    .feed_forward = c.feed_forward,
                    .norm = c.norm,
                    .middle = c.middle,
                    .dropout = c.dropout,
                    .positions = positions_of_layers(c.positions)},
          .layers = c.decoder_layers,
          .causal = true};
}

// A token by its probability: the first whose sum with those before it passes u.
int32_t drawn(const float* p, int64_t vocabulary, double u) {
  double sum = 0;
  for (int64_t token = 0; token < vocabulary; ++token) {
    sum += p[token];
    if (u < sum) return static_cast<int32_t>(token);
  }
  return static_cast<int32_t>(vocabulary - 1);
}

}  // namespace

CausalModel::CausalModel(const TransformerConfig& config, std::shared_ptr<ParamStore> store)
    : config_(config),
      store_(std::move(store)),
      embedding_(token_table(config, *store_)),
      output_weight_(&embedding_),
      stack_(Params(*store_) / "decoder", causal_stack(config)) {
  if (config.positions == ModelPositions::sinusoidal)
    sinusoids_ = sinusoidal_positions(config.max_length, config.width);
  if (config.positions == ModelPositions::learned)
    learned_positions_ = &store_->make("positions.weight", {config.max_length, config.width}, Init::normal(0.02));
  if (!config.tied)
    output_weight_ = &store_->make("output.weight", {config.vocabulary, config.width}, table_init(config));
  output_ = std::make_unique<Linear>(*output_weight_, nullptr, Linear::Part{0, config.vocabulary, 0});
}

Tensor CausalModel::rows(const TokenBatch& input, Pass& pass) const {
  check(input.at.longest <= config_.max_length, "CausalModel: a text of {} tokens; expected at most {}",
        input.at.longest, config_.max_length);
  EmbeddingOptions options;
  if (sinusoids_) {
    options.scale = std::sqrt(static_cast<float>(config_.width));
    options.positions = sinusoids_;
    options.position_ids = input.at.positions;
  }
  Tensor x = embedding(embedding_.value, input.ids, options);
  if (learned_positions_ != nullptr) x = add(x, embedding(learned_positions_->value, input.at.positions));
  return stack_(dropout(x, pass.dropout(config_.dropout)), input.at, pass);
}

Tensor CausalModel::logits(const Tensor& rows) const { return (*output_)(rows, {.result = DType::f32}); }

CrossEntropy CausalModel::loss(const TextBatch& batch, Pass& pass, float smoothing) const {
  return linear_cross_entropy(rows(batch.input, pass), output_weight_->value, batch.labels, {.smoothing = smoothing});
}

void CausalModel::pack(DType compute) {
  stack_.pack(compute);
  output_->pack(compute);
}

std::vector<std::vector<int32_t>> sample_texts(const CausalModel& model, const SampleOptions& options) {
  const TransformerConfig& config = model.config();
  std::vector<std::vector<int32_t>> out(static_cast<size_t>(options.samples));
  for (size_t n = 0; n < out.size(); ++n) {
    Random random(options.seed, n);
    std::vector<int32_t> text{config.begin};
    const int64_t longest = std::min(options.longest, config.max_length - 1);
    // The whole text again for every token: a few samples of a few dozen tokens take less time than a step of training.
    while (static_cast<int64_t>(text.size()) <= longest) {
      Pass pass = Pass::inference(options.compute);
      const Tensor rows = model.rows(token_batch({text}), pass);
      const Tensor p = softmax(model.logits(rows.slice(0, rows.size(0) - 1, rows.size(0))));
      const int32_t token = drawn(p.data<float>(), config.vocabulary, random.uniform());
      if (token == config.end) break;
      text.push_back(token);
    }
    out[n].assign(text.begin() + 1, text.end());
  }
  return out;
}

}  // namespace mh
