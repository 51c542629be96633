// What a training run says while it runs, and how it is asked to stop.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "multihead/tasks/task.h"

namespace mh {

// Known before the first step.
struct TrainStart {
  int64_t parameters = 0;
  TaskFacts data{};
  int64_t first_step = 0;  // steps that a resumed run has behind it
  int64_t steps = 0;       // of the whole run
};

struct TrainStep {
  int64_t step = 0;   // that just ended, counted from 1
  int64_t steps = 0;  // of the whole run
  int64_t epoch = 0;  // counted from 1
  double loss = 0;    // that is trained on, per token
  double learning_rate = 0, grad_norm = 0;
  int64_t tokens = 0;              // of the step, those whose loss counts
  double tokens_per_second = 0;    // moving average
  std::string counted = "tokens";  // what these two count
  double seconds_left = 0;
};

struct TrainValidation {
  int64_t step = 0;
  double loss = 0;                     // per token or text, without smoothing
  Metrics metrics{};                   // of the task, such as {"loss", 2.1}, {"bleu", 31.5}
  std::vector<std::string> samples{};  // of what the model writes, where the task shows any
  Watched watched{};
  bool best = false;                    // by the watched metric, so far
  bool mean = false;                    // of the running mean of the weights, else of the weights themselves
  std::optional<double> other_value{};  // the watched metric of the other of the two, which is worse

  // Throws: invalid_argument where the task has no such metric.
  double value(const std::string& name) const { return value_of(metrics, name); }
};

// Called on the thread that trains, never two at once; those that are empty are not called. What one throws ends the
// run.
struct TrainEvents {
  std::function<void(const TrainStart&)> on_start{};
  std::function<void(const TrainStep&)> on_step{};
  std::function<void(const TrainValidation&)> on_validation{};
  std::function<void(const std::string& path)> on_checkpoint{};
  std::function<void(const std::string& text)> on_message{};                            // a sentence for the user
  std::function<void(const std::string& what, int64_t done, int64_t total)> on_wait{};  // "learning the tokenizer"
  std::function<bool()> stop_requested{};  // asked after every step; true: save and return
};

}  // namespace mh
