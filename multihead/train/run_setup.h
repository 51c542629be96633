// All that a run has before its first step: the data, its batches, the model and its optimiser.
#pragma once

#include <memory>
#include <vector>

#include "multihead/tasks/task.h"
#include "multihead/train/loader.h"
#include "multihead/train/stepper.h"
#include "multihead/train/trainer.h"

namespace mh::detail {

struct RunSetup {
  // Reads what the configuration names and makes the model; writes nothing. The weights are fresh ones or those of
  // model.from, also where there is a run to go on with. Throws: as train.
  explicit RunSetup(const TrainRequest& request);

  TrainConfig config;    // with the tokenizer's number of tokens
  bool has_run = false;  // train.output holds the checkpoints of a run
  std::unique_ptr<Task> task{};
  std::unique_ptr<Loader> loader{};
  int64_t steps = 0;  // of the whole run
  std::unique_ptr<Stepper> stepper{};

  // The batches of the next step.
  std::vector<StepBatch> next_batches() const;
};

}  // namespace mh::detail
