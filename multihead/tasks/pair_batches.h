// Makes batches of sentence pairs, in an order that depends on nothing but the data, the options and the seed.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>

#include "multihead/tasks/dataset.h"
#include "multihead/tasks/task.h"
#include "multihead/models/transformer.h"

namespace mh {

struct PairBatchOptions {
  int64_t tokens_per_batch = 4096;  // target tokens, ends included; a pair with more is a batch of its own
  int64_t window = 65536;           // pairs that are sorted by length together
  uint64_t seed = 1;
  int32_t begin = 1, end = 2;  // ids of <s> and </s>
};

// The pairs of these numbers as one batch, in their order.
PairBatch pack_pairs(const Dataset& data, std::span<const int64_t> pairs, const PairBatchOptions& options);

namespace detail {
class EpochPlan;
}

// Epoch e: pairs shuffled by Fisher and Yates with Random(seed, e); windows of the result, each sorted by target
// length, then source length, equals as they stood; consecutive pairs of a window in a batch while their target tokens
// are at most tokens_per_batch; the batches shuffled with the same numbers going on.
class PairBatches {
 public:
  // Keeps a reference to `data`. Throws: invalid_argument where there are no pairs or an option is below 1.
  PairBatches(const Dataset& data, const PairBatchOptions& options);
  PairBatches(Dataset&& data, const PairBatchOptions& options) = delete;

  // Throws, both: invalid_argument for a batch that the epoch has not.
  PairBatch batch(const Position& at) const;
  Position after(const Position& at) const;

  // Batches of one epoch, and of the first so many; windows that fall differently make a few more or fewer.
  int64_t in_epoch(int64_t epoch) const;
  int64_t in_epochs(int64_t epochs) const;

 private:
  // The plan of the epoch, kept until another is asked for.
  std::shared_ptr<const detail::EpochPlan> plan(const Position& at) const;

  const Dataset& data_;
  const PairBatchOptions options_;
  mutable std::mutex lock_;
  mutable std::shared_ptr<const detail::EpochPlan> plan_;  // behind the lock, as what follows
  mutable int64_t planned_ = -1;
};

}  // namespace mh
