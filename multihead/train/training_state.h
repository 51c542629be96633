// How far a training run is: what a checkpoint holds besides tensors.
#pragma once

#include <cstdint>
#include <string>

#include "multihead/tasks/task.h"

namespace mh::detail {

struct TrainingState {
  int64_t steps = 0;    // taken, those skipped for gradients that were not finite included
  int64_t updates = 0;  // of the weights
  Position position{};
  double best = 0;             // the lowest cost of a validation: the watched metric, negative where higher is better
  int64_t best_step = 0;       // 0: none yet
  int64_t worse = 0;           // validations since the best
  int64_t validated_step = 0;  // the last that was followed by one
  bool mean_shipped = false;   // the model that was written last is the running mean of the weights
  std::string config;          // resolved, as TOML
  std::string data;            // Task::digest of the training data
  std::string tokenizer;       // Task::tokenizer; empty in older checkpoints

  // Notes the cost of a validation after `steps`; whether it is the best so far. One that is not finite never is.
  bool note_validation(double cost);

  std::string to_json() const;
  // Throws: io, naming `path`, where the text is not what to_json wrote.
  static TrainingState from_json(const std::string& text, const std::string& path);
};

}  // namespace mh::detail
