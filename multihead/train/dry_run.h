// A run up to its first step, with nothing written: what `multihead train --check` does.
#pragma once

#include "multihead/train/config.h"
#include "multihead/train/events.h"

namespace mh {

struct DryRun {
  TrainStart start{};
  double loss = 0;     // of the first step, label-smoothed, a target token
  double seconds = 0;  // the step took
};

// Reads the data and takes the step. on_start, on_message and on_wait are called. Throws: as read_corpus, check_config
// and the model do.
DryRun dry_run(const TrainConfig& config, const TrainEvents& events = {});

}  // namespace mh
