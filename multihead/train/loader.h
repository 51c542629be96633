// The batches of a training run, in an order that depends on nothing but the data, the options and the seed.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>

#include "multihead/models/transformer.h"
#include "multihead/train/dataset.h"

namespace mh {

struct LoaderOptions {
  int64_t tokens_per_batch = 4096;  // target tokens, ends included; a pair with more is a batch of its own
  int64_t window = 65536;           // pairs that are sorted by length together
  uint64_t seed = 1;
  bool shuffled = true;        // false, for validation: windows and batches in the order of the data
  int32_t begin = 1, end = 2;  // ids of <s> and </s>
};

// Epoch e: pairs shuffled by Fisher and Yates with Random(seed, e); windows of the result, each sorted by target
// length, then source length, equals as they stood; consecutive pairs of a window in a batch while their target tokens
// are at most tokens_per_batch; the batches shuffled with the same numbers going on. A thread of its own keeps a few
// ready.
class Loader {
 public:
  // What the next batch is.
  struct Position {
    int64_t epoch = 0, batch = 0;
    friend bool operator==(const Position&, const Position&) = default;
  };

  // Keeps a reference to `data`. Throws: invalid_argument where there are no pairs or an option is below 1.
  Loader(const Dataset& data, const LoaderOptions& options);
  Loader(Dataset&& data, const LoaderOptions& options) = delete;
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  // Epoch after epoch, without end. Throws: OutOfMemory.
  PairBatch next();
  Position position() const { return position_; }
  // The batches after it are those that a loader which came there by itself gives, bit for bit.
  // Throws: invalid_argument for a batch that the epoch has not.
  void seek(const Position& position);

  // Batches of one epoch, and of the first so many; windows that fall differently make a few more or fewer.
  int64_t batches(int64_t epoch) const;
  int64_t total_batches(int64_t epochs) const;

 private:
  struct Ready {
    PairBatch batch;
    Position next;
  };
  void work(Position at);
  void stop();

  const Dataset& data_;
  const LoaderOptions options_;
  Position position_;

  std::mutex lock_;
  std::condition_variable changed_;
  std::deque<Ready> ready_;     // behind the lock, as all that follows
  std::exception_ptr failure_;  // what ended the thread
  bool stopping_ = false;
  std::thread thread_;  // runs from the first next() on
};

}  // namespace mh
