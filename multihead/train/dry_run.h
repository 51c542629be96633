// A run up to its first step, with nothing written: what `multihead train --check` does.
#pragma once

#include "multihead/train/trainer.h"

namespace mh {

struct DryRun {
  TrainStart start{};
  double loss = 0;     // of the first step, per token
  double seconds = 0;  // the step took
};

// Reads the data and takes the first step with fresh weights, whether or not there is a run to resume; on_start,
// on_message and on_wait are called. Throws: as train.
DryRun dry_run(const TrainRequest& request);

}  // namespace mh
