// Packs the pairs of a plan into tensors.
#include "multihead/tasks/pair_batches.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "multihead/base/error.h"
#include "multihead/base/parallel.h"
#include "multihead/tasks/epoch_plan.h"

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

PairBatch pack_pairs(const Dataset& data, std::span<const int64_t> pairs, const PairBatchOptions& options) {
  std::vector<int64_t> source_lengths, target_lengths;
  for (const int64_t pair : pairs) {
    source_lengths.push_back(static_cast<int64_t>(data.source(pair).size()) + 1);
    target_lengths.push_back(static_cast<int64_t>(data.target(pair).size()) + 1);
  }
  const Sequences sources = Sequences::of_lengths(source_lengths), targets = Sequences::of_lengths(target_lengths);
  Packer source(sources.rows), input(targets.rows), labels(targets.rows);
  for (const int64_t pair : pairs) {
    source.add({}, data.source(pair), options.end);
    input.add(options.begin, data.target(pair), {});
    labels.add({}, data.target(pair), options.end);
  }
  return {.source = {source.ids(), sources}, .input = {input.ids(), targets}, .labels = labels.ids()};
}

PairBatches::PairBatches(const Dataset& data, const PairBatchOptions& options) : data_(data), options_(options) {
  check(data.size() > 0, "batches: no pairs; expected 1 or more");
  check(options.tokens_per_batch >= 1 && options.window >= 1,
        "batches: tokens_per_batch {}, window {}; expected both at least 1", options.tokens_per_batch, options.window);
}

std::shared_ptr<const detail::EpochPlan> PairBatches::plan(const Position& at) const {
  check(at.epoch >= 0 && at.batch >= 0, "batches: epoch {}, batch {}; expected neither below 0", at.epoch, at.batch);
  const std::lock_guard guard(lock_);
  if (planned_ != at.epoch) {
    plan_ = std::make_shared<const detail::EpochPlan>(data_, options_, at.epoch);
    planned_ = at.epoch;
  }
  check(at.batch < plan_->batches(), "batches: epoch {} has {} batches; expected fewer than that before batch {}",
        at.epoch, plan_->batches(), at.batch);
  return plan_;
}

PairBatch PairBatches::batch(const Position& at) const {
  return pack_pairs(data_, plan(at)->batch(at.batch), options_);
}

Position PairBatches::after(const Position& at) const {
  return at.batch + 1 < plan(at)->batches() ? Position{at.epoch, at.batch + 1} : Position{at.epoch + 1, 0};
}

int64_t PairBatches::in_epoch(int64_t epoch) const { return detail::EpochPlan(data_, options_, epoch).batches(); }

int64_t PairBatches::in_epochs(int64_t epochs) const {
  check(epochs >= 0, "batches: {} epochs; expected 0 or more", epochs);
  // One window: sorted it is the same in every epoch.
  if (options_.window >= data_.size()) return epochs * in_epoch(0);
  std::vector<int64_t> counts(static_cast<size_t>(epochs));
  parallel_for(epochs, [&](int64_t epoch) { counts[static_cast<size_t>(epoch)] = in_epoch(epoch); });
  return std::accumulate(counts.begin(), counts.end(), int64_t{0});
}

}  // namespace mh
