// Plans of epochs, and tensors of what they name.
#include "multihead/tasks/data/batches.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "multihead/base/error.h"
#include "multihead/base/parallel.h"
#include "multihead/tasks/data/epoch_plan.h"

namespace mh {

namespace {

// Fills a tensor of ids side by side; `before` and `after` stand around each where given.
class Packer {
 public:
  explicit Packer(int64_t rows) : ids_(empty({rows}, DType::i32)), at_(ids_.data<int32_t>()) {}

  void add(std::optional<int32_t> before, std::span<const int32_t> ids, std::optional<int32_t> after) {
    if (before) *at_++ = *before;
    at_ = std::copy(ids.begin(), ids.end(), at_);
    if (after) *at_++ = *after;
  }
  const Tensor& ids() const { return ids_; }

 private:
  Tensor ids_;
  int32_t* at_;
};

}  // namespace

BatchOrder::BatchOrder(std::vector<ExampleLength> lengths, const OrderOptions& options)
    : lengths_(std::move(lengths)), options_(options) {
  check(!lengths_.empty(), "batches: no examples; expected 1 or more");
  check(options.tokens_per_batch >= 1 && options.window >= 1,
        "batches: tokens_per_batch {}, window {}; expected both at least 1", options.tokens_per_batch, options.window);
}

std::shared_ptr<const detail::EpochPlan> BatchOrder::plan(const Position& at) const {
  check(at.epoch >= 0 && at.batch >= 0, "batches: epoch {}, batch {}; expected neither below 0", at.epoch, at.batch);
  const std::lock_guard guard(lock_);
  if (planned_ != at.epoch) {
    plan_ = std::make_shared<const detail::EpochPlan>(lengths_, options_, at.epoch);
    planned_ = at.epoch;
  }
  check(at.batch < plan_->batches(), "batches: epoch {} has {} batches; expected fewer than that before batch {}",
        at.epoch, plan_->batches(), at.batch);
  return plan_;
}

std::vector<int64_t> BatchOrder::examples(const Position& at) const {
  const auto held = plan(at);
  const std::span<const int64_t> batch = held->batch(at.batch);
  return {batch.begin(), batch.end()};
}

Position BatchOrder::after(const Position& at) const {
  return at.batch + 1 < plan(at)->batches() ? Position{at.epoch, at.batch + 1} : Position{at.epoch + 1, 0};
}

int64_t BatchOrder::in_epoch(int64_t epoch) const { return detail::EpochPlan(lengths_, options_, epoch).batches(); }

int64_t BatchOrder::in_epochs(int64_t epochs) const {
  check(epochs >= 0, "batches: {} epochs; expected 0 or more", epochs);
  // One window: sorted it is the same in every epoch.
  if (options_.window >= static_cast<int64_t>(lengths_.size())) return epochs * in_epoch(0);
  std::vector<int64_t> counts(static_cast<size_t>(epochs));
  parallel_for(epochs, [&](int64_t epoch) { counts[static_cast<size_t>(epoch)] = in_epoch(epoch); });
  return std::accumulate(counts.begin(), counts.end(), int64_t{0});
}

std::vector<ExampleLength> lengths_of(const Dataset& data) {
  std::vector<ExampleLength> out;
  out.reserve(static_cast<size_t>(data.size()));
  for (int64_t i = 0; i < data.size(); ++i)
    out.push_back({static_cast<int64_t>(data.target(i).size()) + 1, static_cast<int64_t>(data.source(i).size()) + 1});
  return out;
}

PairBatch pack_pairs(const Dataset& data, std::span<const int64_t> pairs, const SentenceEnds& ends) {
  std::vector<int64_t> source_lengths, target_lengths;
  for (const int64_t pair : pairs) {
    source_lengths.push_back(static_cast<int64_t>(data.source(pair).size()) + 1);
    target_lengths.push_back(static_cast<int64_t>(data.target(pair).size()) + 1);
  }
  const Sequences sources = Sequences::of_lengths(source_lengths), targets = Sequences::of_lengths(target_lengths);
  Packer source(sources.rows), input(targets.rows), labels(targets.rows);
  for (const int64_t pair : pairs) {
    source.add({}, data.source(pair), ends.end);
    input.add(ends.begin, data.target(pair), {});
    labels.add({}, data.target(pair), ends.end);
  }
  return {.source = {source.ids(), sources}, .input = {input.ids(), targets}, .labels = labels.ids()};
}

TextBatch pack_texts(const std::vector<std::span<const int32_t>>& texts, int32_t begin) {
  std::vector<int64_t> lengths;
  for (const auto& text : texts) lengths.push_back(static_cast<int64_t>(text.size()));
  const Sequences at = Sequences::of_lengths(lengths);
  Packer input(at.rows), labels(at.rows);
  for (const auto& text : texts) {
    input.add(begin, text.first(text.size() - 1), {});
    labels.add({}, text, {});
  }
  return {.input = {input.ids(), at}, .labels = labels.ids()};
}

}  // namespace mh
