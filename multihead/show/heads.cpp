// Observers that replace, scale and measure heads, and the passes they watch.
#include "multihead/show/heads.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "multihead/autograd/tape.h"
#include "multihead/base/error.h"
#include "multihead/ops/elementwise.h"
#include "multihead/ops/rows/embedding.h"
#include "multihead/ops/shape.h"

namespace mh {

namespace {

AttentionKind kind_of(const AttendedCall& call) {
  return call.cross ? AttentionKind::cross : call.options.mask.causal ? AttentionKind::decoder : AttentionKind::encoder;
}

using Spans = const int32_t*;

// What head h reads with equal weights: the mean of the values of its sequence, up to the row where causal.
void write_uniform(const AttendedCall& call, int64_t h, const Tensor& o) {
  const Packed& packed = call.options.packed.value();
  const Spans q = packed.cu_seqlens_q.data<int32_t>(), k = packed.cu_seqlens_k.data<int32_t>();
  const Tensor& v = call.call.v;
  const int64_t value_head = h * v.size(1) / o.size(1), width = o.size(2);
  for (int64_t b = 0; b + 1 < packed.cu_seqlens_q.count(); ++b) {
    for (int64_t d = 0; d < width; ++d) {
      const int64_t keys = k[b + 1] - k[b], rows = q[b + 1] - q[b];
      double sum = 0;
      int64_t counted = 0;
      for (int64_t i = 0; i < rows; ++i) {
        const int64_t seen = call.options.mask.causal ? std::clamp<int64_t>(keys - rows + i + 1, 0, keys) : keys;
        for (; counted < seen; ++counted) sum += v.item({k[b] + counted, value_head, d});
        o.select(0, q[b] + i)
            .select(0, h)
            .select(0, d)
            .copy_from(full({}, counted > 0 ? sum / static_cast<double>(counted) : 0, o.dtype()));
      }
    }
  }
}

void write_mean(int64_t h, const Tensor& o) {
  for (int64_t d = 0; d < o.size(2); ++d) {
    double sum = 0;
    for (int64_t i = 0; i < o.size(0); ++i) sum += o.item({i, h, d});
    const Tensor column = o.select(2, d).select(1, h);
    column.copy_from(full(column.shape(), sum / static_cast<double>(std::max<int64_t>(1, o.size(0))), o.dtype()));
  }
}

// Scales every head by a traced 1 of its own in every sequence, and measures its weights.
class MeasuredHeads final : public AttentionObserver {
 public:
  struct Layer {
    AttentionKind kind;
    int64_t layer;
    Tensor scales;                              // (B, H), traced
    std::vector<double> entropy, confidence{};  // of each head, sums over rows
    int64_t rows = 0;
  };

  Tensor attended(const AttendedCall& call) override {
    const Packed& packed = call.options.packed.value();
    const Tensor& o = call.call.result.o;
    const AttentionKind kind = kind_of(call);
    const int64_t batch = packed.cu_seqlens_q.count() - 1, heads = o.size(1);
    Layer layer{kind,
                seen_[static_cast<int>(kind)]++,
                parameter(full({batch, heads}, 1)),
                std::vector<double>(static_cast<size_t>(heads)),
                std::vector<double>(static_cast<size_t>(heads)),
                o.size(0)};
    measure(call, layer);
    const Tensor owner = empty({o.size(0)}, DType::i32);
    const Spans starts = packed.cu_seqlens_q.data<int32_t>();
    for (int64_t b = 0; b < batch; ++b)
      std::fill(owner.data<int32_t>() + starts[b], owner.data<int32_t>() + starts[b + 1], static_cast<int32_t>(b));
    layers.push_back(layer);
    return mul(o, reshape(embedding(layer.scales, owner), {o.size(0), heads, 1}));
  }

  std::vector<Layer> layers{};

 private:
  static void measure(const AttendedCall& call, Layer& layer) {
    const NoTape untaped;
    const Packed& packed = call.options.packed.value();
    const Spans starts = packed.cu_seqlens_q.data<int32_t>();
    const AttentionStatistics s = attention_statistics(call.call.q.detach(), call.call.k.detach(),
                                                       call.call.result.lse.detach(), call.options, 1);
    for (int64_t b = 0; b < layer.scales.size(0); ++b) {
      for (int64_t h = 0; h < layer.scales.size(1); ++h) {
        for (int64_t i = 0; i < starts[b + 1] - starts[b]; ++i) {
          layer.entropy[static_cast<size_t>(h)] += s.entropy.item({b, h, i});
          layer.confidence[static_cast<size_t>(h)] += s.top_weights.item({b, h, i, 0});
        }
      }
    }
  }
  int64_t seen_[3] = {};
};

std::vector<PairBatch> batches_of(const Transformer& model, const std::vector<SentencePair>& pairs, int64_t most) {
  std::vector<PairBatch> out;
  std::vector<const SentencePair*> some;
  int64_t tokens = 0;
  for (const SentencePair& pair : pairs) {
    const auto own = static_cast<int64_t>(pair.first.size() + pair.second.size() + 2);
    if (!some.empty() && tokens + own > most) {
      out.push_back(pair_batch(some, model.config()));
      some.clear();
      tokens = 0;
    }
    some.push_back(&pair);
    tokens += own;
  }
  out.push_back(pair_batch(some, model.config()));
  return out;
}

double nats(const Transformer& model, const std::vector<PairBatch>& batches, const HeadName* without, Ablation how) {
  double sum = 0;
  for (const PairBatch& batch : batches) {
    AblatedHeads ablated(without == nullptr ? std::vector<HeadName>{} : std::vector<HeadName>{*without}, how);
    Pass pass = Pass::inference().watched_by(&ablated);
    sum += model.loss(batch, pass, 0).nll.item({});
  }
  return sum;
}

// Adds the gradients and measures of a batch to `heads`, which are made by the first.
void add_measures(const Transformer& model, const PairBatch& batch, std::vector<HeadImportance>& heads,
                  std::vector<int64_t>& rows) {
  MeasuredHeads measured;
  Pass pass = Pass::inference().watched_by(&measured);
  Tape tape;
  const CrossEntropy loss = model.loss(batch, pass, 0);
  const Gradients gradients = tape.backward(loss.loss);
  if (heads.empty()) {
    for (const MeasuredHeads::Layer& layer : measured.layers)
      for (int64_t h = 0; h < layer.scales.size(1); ++h) heads.push_back({.head = {layer.kind, layer.layer, h}});
    rows.resize(heads.size());
  }
  size_t n = 0;
  for (const MeasuredHeads::Layer& layer : measured.layers) {
    const Tensor d = gradients.of(layer.scales);
    for (int64_t h = 0; h < layer.scales.size(1); ++h, ++n) {
      // The loss is the mean over the batch's tokens.
      for (int64_t b = 0; b < layer.scales.size(0); ++b)
        heads[n].gradient += std::abs(d.item({b, h})) * static_cast<double>(loss.counted);
      heads[n].entropy += layer.entropy[static_cast<size_t>(h)];
      heads[n].confidence += layer.confidence[static_cast<size_t>(h)];
      rows[n] += layer.rows;
    }
  }
}

}  // namespace

std::string to_string(const HeadName& head) {
  constexpr const char* kNames[] = {"encoder", "decoder", "cross"};
  return fmt::format("{} {}.{}", kNames[static_cast<int>(head.kind)], head.layer + 1, head.head + 1);
}

Tensor AblatedHeads::attended(const AttendedCall& call) {
  const AttentionKind kind = kind_of(call);
  const int64_t layer = seen_[static_cast<int>(kind)]++;
  Tensor o = call.call.result.o;
  bool own = false;
  for (const HeadName& head : heads_) {
    if (head.kind != kind || head.layer != layer) continue;
    check(head.head >= 0 && head.head < o.size(1), "ablate: {} does not exist; the layer has {} heads", to_string(head),
          o.size(1));
    if (!own) o = o.detach().clone();
    own = true;
    const Tensor part = o.select(1, head.head);
    if (how_ == Ablation::zero) part.copy_from(full(part.shape(), 0, o.dtype()));
    if (how_ == Ablation::mean) write_mean(head.head, o);
    if (how_ == Ablation::uniform) write_uniform(call, head.head, o);
  }
  return o;
}

HeadReport head_importance(const Transformer& model, const std::vector<SentencePair>& pairs,
                           const HeadReportOptions& options) {
  check(!pairs.empty(), "heads: there is no pair of sentences; expected one or more");
  const std::vector<PairBatch> batches = batches_of(model, pairs, options.tokens_per_batch);
  HeadReport report{.loss = 0, .sentences = static_cast<int64_t>(pairs.size()), .tokens = 0, .heads = {}};
  std::vector<int64_t> rows;
  for (const PairBatch& batch : batches) {
    add_measures(model, batch, report.heads, rows);
    report.tokens += batch.target_tokens();
  }
  const auto tokens = static_cast<double>(report.tokens);
  report.loss = nats(model, batches, nullptr, options.ablation) / tokens;
  for (size_t n = 0; n < report.heads.size(); ++n) {
    HeadImportance& head = report.heads[n];
    head.loss_added = nats(model, batches, &head.head, options.ablation) / tokens - report.loss;
    head.gradient /= static_cast<double>(pairs.size());
    head.entropy /= static_cast<double>(rows[n]);
    head.confidence /= static_cast<double>(rows[n]);
  }
  std::stable_sort(report.heads.begin(), report.heads.end(),
                   [](const HeadImportance& a, const HeadImportance& b) { return a.head.kind < b.head.kind; });
  return report;
}

}  // namespace mh
