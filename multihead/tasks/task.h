// What a training run needs of a task: its data as batches, the loss of a batch, a verdict on the model, and what is
// saved.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "multihead/nn/params.h"
#include "multihead/nn/pass.h"
#include "multihead/ops/rows/cross_entropy.h"

namespace mh {

// Names and numbers in the order they are shown: {"loss", 3.2}, {"perplexity", 24.5}, …
using Metrics = std::vector<std::pair<std::string, double>>;
// Throws: invalid_argument where there is no such metric.
double value_of(const Metrics& metrics, const std::string& name);

// Which batch of a run is next.
struct Position {
  int64_t epoch = 0, batch = 0;
  friend bool operator==(const Position&, const Position&) = default;
};

// What one forward pass reads: each task has its own.
class Batch {
 public:
  virtual ~Batch() = default;
  virtual int64_t tokens() const = 0;  // whose loss counts
};

// The metric of a validation by which the better model is known.
struct Watched {
  std::string metric = "loss";
  bool higher_is_better = false;

  // Lower is better.
  double cost(double value) const { return higher_is_better ? -value : value; }
};

// What a task is made of, for those who watch.
struct TaskFacts {
  std::string examples = "pairs";  // what the data consist of
  std::string counted = "tokens";  // what the loss is a mean over
  Watched watched{};
  int64_t train = 0, valid = 0;  // examples
  int64_t tokens = 0;            // of the training data, or texts: those whose loss counts
  int64_t source_tokens = 0;     // of the training data, those that are only read
  int64_t vocabulary = 0;
  std::string model{};  // "bert, width 128, …", where [model] does not say it
};

struct ValidateOptions {
  DType compute = DType::f32;
  bool answers = true;  // also metrics and samples of what the model writes; else the watched metric may be all
};

struct Verdict {
  Metrics metrics{};                   // the first is the watched one; one is "loss"
  std::vector<std::string> samples{};  // of what the model writes

  double watched() const { return metrics.front().second; }
  // Puts this metric first; NaN, never the best, where the loss is not finite. Throws: as value_of.
  void watch(const std::string& metric);
};

// A task holds its data from the beginning, and its model from make_model on. batch() and after() may be called from
// one thread while another computes.
class Task {
 public:
  virtual ~Task() = default;

  virtual TaskFacts facts() const = 0;
  // A hash of the training data: a resumed run says so where it differs.
  virtual std::string digest() const = 0;
  // The hash of the tokenizer, tokenizer_hash; empty where there is none.
  virtual std::string tokenizer() const { return {}; }

  // Batches of the first so many epochs.
  virtual int64_t batches(int64_t epochs) const = 0;
  // Depends on data, seed and position alone. Throws: invalid_argument where the epoch has no such batch.
  virtual std::unique_ptr<Batch> batch(const Position& at) const = 0;
  // The batch that follows, in the next epoch after the last. Throws: as batch.
  virtual Position after(const Position& at) const = 0;

  // Makes the model's parameters in `store`, once.
  virtual void make_model(std::shared_ptr<ParamStore> store) = 0;
  // The loss per token that is trained on, and the plain negative log-likelihood. `batch` is one of this task's.
  virtual CrossEntropy loss(const Batch& batch, Pass& pass) const = 0;
  // How good the model is on data it was not trained on; only where facts().valid > 0.
  virtual Verdict validate(const ValidateOptions& options) = 0;

  // Writes what stands beside the model and does not change while it learns: the tokenizer.
  virtual void begin(const std::string& folder) const = 0;
  // Writes the model as it is now, durably, as FOLDER/model.safetensors.
  virtual void save(const std::string& folder) const = 0;
};

}  // namespace mh
