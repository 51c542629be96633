// Packs batches ahead of their use.
#include "multihead/train/loader.h"

#include <pthread.h>

#include <numeric>
#include <optional>
#include <system_error>
#include <utility>

#include "multihead/base/parallel.h"
#include "multihead/base/signals_blocked.h"
#include "multihead/train/epoch_plan.h"

namespace mh {

namespace {

// Packing takes microseconds where a step takes milliseconds or more: this only has to cover the plan of a new epoch.
constexpr size_t kAhead = 8;

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

PairBatch pack(const Dataset& data, std::span<const int64_t> pairs, const LoaderOptions& options) {
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

}  // namespace

Loader::Loader(const Dataset& data, const LoaderOptions& options) : data_(data), options_(options) {
  check(data.size() > 0, "Loader: no pairs; expected 1 or more");
  check(options.tokens_per_batch >= 1 && options.window >= 1,
        "Loader: tokens_per_batch {}, window {}; expected both at least 1", options.tokens_per_batch, options.window);
}

Loader::~Loader() { stop(); }

PairBatch Loader::next() {
  if (!thread_.joinable()) {
    const SignalsBlocked blocked;
    try {
      thread_ = std::thread([this, at = position_] { work(at); });
    } catch (const std::system_error& error) {
      fail(ErrorKind::io, "Loader: no thread can be started to prepare batches ({}); expected memory and a thread to be left",
           error.code().message());
    }
    pthread_setname_np(thread_.native_handle(), "mh-loader");
  }
  std::unique_lock guard(lock_);
  changed_.wait(guard, [&] { return !ready_.empty() || failure_; });
  if (ready_.empty()) std::rethrow_exception(failure_);
  Ready ready = std::move(ready_.front());
  ready_.pop_front();
  guard.unlock();
  changed_.notify_one();
  position_ = ready.next;
  return std::move(ready.batch);
}

void Loader::work(Position at) {
  try {
    while (true) {
      const detail::EpochPlan plan(data_, options_, at.epoch);
      while (at.batch < plan.batches()) {
        PairBatch batch = pack(data_, plan.batch(at.batch), options_);
        ++at.batch;
        const Position next = at.batch < plan.batches() ? at : Position{at.epoch + 1, 0};
        std::unique_lock guard(lock_);
        changed_.wait(guard, [&] { return ready_.size() < kAhead || stopping_; });
        if (stopping_) return;
        ready_.push_back({std::move(batch), next});
        changed_.notify_one();
      }
      at = {at.epoch + 1, 0};
    }
  } catch (...) {
    const std::lock_guard guard(lock_);
    failure_ = std::current_exception();
    changed_.notify_one();
  }
}

void Loader::stop() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard guard(lock_);
    stopping_ = true;
  }
  changed_.notify_one();
  thread_.join();
  stopping_ = false;
  failure_ = nullptr;
  ready_.clear();
}

void Loader::seek(const Position& position) {
  check(position.epoch >= 0 && position.batch >= 0, "Loader: epoch {}, batch {}; expected neither below 0",
        position.epoch, position.batch);
  const int64_t most = batches(position.epoch);
  check(position.batch < most, "Loader: epoch {} has {} batches; expected fewer than that before batch {}",
        position.epoch, most, position.batch);
  stop();
  position_ = position;
}

int64_t Loader::batches(int64_t epoch) const { return detail::EpochPlan(data_, options_, epoch).batches(); }

int64_t Loader::total_batches(int64_t epochs) const {
  check(epochs >= 0, "Loader: {} epochs; expected 0 or more", epochs);
  // One window: sorted it is the same in every epoch.
  if (options_.window >= data_.size() || !options_.shuffled) return epochs * batches(0);
  std::vector<int64_t> counts(static_cast<size_t>(epochs));
  parallel_for(epochs, [&](int64_t epoch) { counts[static_cast<size_t>(epoch)] = batches(epoch); });
  return std::accumulate(counts.begin(), counts.end(), int64_t{0});
}

}  // namespace mh
