// From the keys of a configuration to a task and the options of the stepper.
#include "multihead/train/config/run_options.h"

#include "multihead/base/error.h"
#include "multihead/io/checkpoint.h"
#include "multihead/tasks/task_type.h"

namespace mh::detail {

TaskSetup task_setup(const TrainConfig& config) {
  return {.task = config.task,
          .model = config.model,
          .recurrent = config.recurrent,
          .head = config.head,
          .tokenizer = config.tokenizer,
          .data = config.data,
          .smoothing = static_cast<float>(config.train.label_smoothing),
          .seed = static_cast<uint64_t>(config.train.seed),
          .from = config.start.from};
}

std::unique_ptr<Task> make_task(const TrainConfig& config, const TrainEvents& events, const std::string& tokenizer) {
  TaskSetup setup = task_setup(config);
  setup.tokenizer_file = tokenizer;
  setup.events = {.on_message = events.on_message, .on_wait = events.on_wait};
  return task_type(config.task.kind).make(setup);
}

StepperOptions stepper_options(const TrainConfig& config, int64_t steps) {
  const OptimizerConfig& o = config.optimizer;
  return {
      .optimiser = {.beta1 = o.beta1,
                    .beta2 = o.beta2,
                    .epsilon = o.epsilon,
                    .weight_decay = o.weight_decay,
                    .clip = o.clip,
                    .mean = config.train.ema},
      .schedule = {.kind = o.schedule, .rate = o.learning_rate, .warmup = o.warmup, .steps = steps, .floor = o.floor},
      .compute = config.train.precision,
      .seed = static_cast<uint64_t>(config.train.seed)};
}

int64_t planned_steps(const TrainConfig& config, const Task& task) {
  if (config.train.steps > 0) return config.train.steps;
  const int64_t steps = task.batches(config.train.epochs) / config.train.accumulate;
  check(steps > 0, "train: the data make no whole step; expected more of them, or train.accumulate below {}",
        config.train.accumulate);
  return steps;
}

std::string checkpoint_folder(const TrainConfig& config) { return config.train.output + "/checkpoints"; }

bool holds_run(const TrainConfig& config, bool resume) {
  const bool holds = !list_checkpoints(checkpoint_folder(config)).empty();
  check(resume || !holds, "train: {} holds a run already; expected --resume to go on with it, or another train.output",
        config.train.output);
  return holds;
}

TrainStart train_start(const Task& task, const Stepper& stepper, int64_t steps) {
  return {.parameters = stepper.params().count(), .data = task.facts(), .first_step = stepper.steps(), .steps = steps};
}

}  // namespace mh::detail
