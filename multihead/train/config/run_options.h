// What a configuration means for the parts of a run.
#pragma once

#include <memory>
#include <string>

#include "multihead/tasks/task.h"
#include "multihead/train/config/config.h"
#include "multihead/train/log/events.h"
#include "multihead/train/stepper.h"

namespace mh::detail {

// What the sections of a configuration say to a task.
TaskSetup task_setup(const TrainConfig& config);

// `tokenizer`: of the run or model that is gone on with; empty: as the configuration says.
std::unique_ptr<Task> make_task(const TrainConfig& config, const TrainEvents& events, const std::string& tokenizer);
StepperOptions stepper_options(const TrainConfig& config, int64_t steps);

// Steps of the whole run: train.steps, or as many as train.epochs make; batches that fill no last step are skipped.
// Throws: invalid_argument where the data make no whole step.
int64_t planned_steps(const TrainConfig& config, const Task& task);

// Whether train.output holds the checkpoints of a run. Throws: invalid_argument where it does and `resume` is false.
bool holds_run(const TrainConfig& config, bool resume);
std::string checkpoint_folder(const TrainConfig& config);

TrainStart train_start(const Task& task, const Stepper& stepper, int64_t steps);

}  // namespace mh::detail
