// From the keys of a configuration to the options of loader and stepper.
#include "multihead/train/run_options.h"

#include "multihead/base/error.h"
#include "multihead/io/checkpoint.h"

namespace mh::detail {

LoaderOptions loader_options(const TrainConfig& config) {
  return {.tokens_per_batch = config.data.tokens_per_batch,
          .window = config.data.window,
          .seed = static_cast<uint64_t>(config.train.seed),
          .begin = config.model.begin,
          .end = config.model.end};
}

StepperOptions stepper_options(const TrainConfig& config, int64_t steps) {
  const OptimizerConfig& o = config.optimizer;
  return {.model = config.model,
          .optimiser = {.beta1 = o.beta1,
                        .beta2 = o.beta2,
                        .epsilon = o.epsilon,
                        .weight_decay = o.weight_decay,
                        .clip = o.clip,
                        .mean = config.train.ema},
          .schedule = {.kind = o.schedule, .rate = o.learning_rate, .warmup = o.warmup, .steps = steps},
          .smoothing = static_cast<float>(config.train.label_smoothing),
          .compute = config.train.precision,
          .seed = static_cast<uint64_t>(config.train.seed)};
}

int64_t planned_steps(const TrainConfig& config, const Loader& loader) {
  if (config.train.steps > 0) return config.train.steps;
  const int64_t steps = loader.total_batches(config.train.epochs) / config.train.accumulate;
  check(steps > 0, "train: the pairs make no whole step; expected more of them, or train.accumulate below {}",
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

TrainStart train_start(const Corpus& corpus, const Stepper& stepper, int64_t steps) {
  return {.parameters = stepper.model().params().count(),
          .vocabulary = corpus.tokenizer.size(),
          .train_pairs = corpus.train.size(),
          .valid_pairs = corpus.valid.size(),
          .source_tokens = corpus.train.source_tokens(),
          .target_tokens = corpus.train.target_tokens(),
          .first_step = stepper.steps(),
          .steps = steps};
}

}  // namespace mh::detail
