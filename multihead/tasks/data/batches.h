// The one maker of batches: which examples go together, in which order, and how they are packed into tensors.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "multihead/models/transformer.h"
#include "multihead/tasks/data/dataset.h"
#include "multihead/tasks/task.h"

namespace mh {

struct OrderOptions {
  int64_t tokens_per_batch = 4096;  // whose loss counts; an example with more is a batch of its own
  int64_t window = 65536;           // examples that are sorted by length together
  uint64_t seed = 1;
};

// Of one example: the tokens whose loss counts, and those that are only read.
struct ExampleLength {
  int64_t tokens = 0, source = 0;
};

namespace detail {
class EpochPlan;
}

// Epoch e: examples shuffled by Fisher and Yates with Random(seed, e); windows of the result, each sorted by tokens,
// then source, equals as they stood; consecutive examples of a window in a batch while their tokens are at most
// tokens_per_batch; the batches shuffled with the same numbers going on. It follows from the lengths, the options and
// the epoch alone.
class BatchOrder {
 public:
  // Throws: invalid_argument where there are no examples or an option is below 1.
  BatchOrder(std::vector<ExampleLength> lengths, const OrderOptions& options);

  // Numbers of examples. Throws, as after: invalid_argument for a batch that the epoch has not.
  std::vector<int64_t> examples(const Position& at) const;
  Position after(const Position& at) const;

  // Batches of one epoch, and of the first so many; windows that fall differently make a few more or fewer.
  int64_t in_epoch(int64_t epoch) const;
  int64_t in_epochs(int64_t epochs) const;

 private:
  // The plan of the epoch, kept until another is asked for.
  std::shared_ptr<const detail::EpochPlan> plan(const Position& at) const;

  const std::vector<ExampleLength> lengths_;
  const OrderOptions options_;
  mutable std::mutex lock_;
  mutable std::shared_ptr<const detail::EpochPlan> plan_;  // behind the lock, as what follows
  mutable int64_t planned_ = -1;
};

// The lengths of all pairs, their ends included.
std::vector<ExampleLength> lengths_of(const Dataset& data);

// Ids of the special tokens around a sentence.
struct SentenceEnds {
  int32_t begin = 1, end = 2;
};

// The pairs of these numbers as one batch, in their order.
PairBatch pack_pairs(const Dataset& data, std::span<const int64_t> pairs, const SentenceEnds& ends);

// What a language model reads and predicts: <s> y₁ … yₙ₋₁ and y₁ … yₙ of every text.
struct TextBatch {
  TokenBatch input{};
  Tensor labels{};  // i32 (rows of input)
};
TextBatch pack_texts(const std::vector<std::span<const int32_t>>& texts, int32_t begin);

}  // namespace mh
