// A training run of any task, from a config to a model folder.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "multihead/ops/profile.h"
#include "multihead/train/config/config.h"
#include "multihead/train/log/events.h"

namespace mh {

struct TrainRequest {
  TrainConfig config{};
  bool resume = false;   // go on from the newest checkpoint of the folder; begin where there is none
  bool profile = false;  // time the kernels of every step but the first few
  TrainEvents events{};
};

struct TrainOutcome {
  int64_t steps = 0;
  bool stopped = false;          // asked to stop before the end; a checkpoint was saved
  double best_validation = 0;    // value of the watched metric
  std::string watched = "loss";  // its name
  bool mean_shipped = false;     // model.safetensors is the running mean of the weights
  std::string folder;
  std::vector<ProfileRow> profile{};  // where it was asked for, with how many steps and seconds it covers
  int64_t profiled_steps = 0;
  double profiled_seconds = 0;
};

// Trains and leaves in config.train.output: config.toml (resolved), tokenizer.json, checkpoints/, metrics.jsonl, event
// files for TensorBoard, and model.safetensors: the weights, or their running mean, with the best validation; where
// none was made, the newest ones.
//
// A run that was stopped or killed and resumed ends with the bits of one that was not. Asked to stop, it saves and ends
// after the step at hand. Throws: invalid_argument, io; a folder that holds another run is refused unless `resume`, and
// one that another process trains into always; a model that cannot fit into memory before any of it is taken; a run
// that diverged (train.give_up_after), after what it had is saved.
TrainOutcome train(const TrainRequest& request);

}  // namespace mh
