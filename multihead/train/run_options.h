// What a configuration means for the parts of a run.
#pragma once

#include "multihead/train/config.h"
#include "multihead/train/corpus.h"
#include "multihead/train/loader.h"
#include "multihead/train/stepper.h"

namespace mh::detail {

LoaderOptions loader_options(const TrainConfig& config);
StepperOptions stepper_options(const TrainConfig& config, int64_t steps);

// Steps of the whole run: train.steps, or as many as train.epochs make; batches that fill no last step are left out.
// Throws: invalid_argument where the pairs make no whole step.
int64_t planned_steps(const TrainConfig& config, const Loader& loader);

// Whether train.output holds the checkpoints of a run. Throws: invalid_argument where it does and `resume` is false.
bool holds_run(const TrainConfig& config, bool resume);
std::string checkpoint_folder(const TrainConfig& config);

TrainStart train_start(const Corpus& corpus, const Stepper& stepper, int64_t steps);

}  // namespace mh::detail
