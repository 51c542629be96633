// From a configuration to what the first step needs.
#include "multihead/train/run_setup.h"

#include "multihead/base/available_memory.h"
#include "multihead/base/parallel.h"
#include "multihead/io/durable_file.h"
#include "multihead/io/folder_lock.h"
#include "multihead/train/memory_need.h"
#include "multihead/train/run_options.h"
#include "multihead/train/start_model.h"

namespace mh::detail {

RunSetup::RunSetup(const TrainRequest& request) : config(request.config) {
  check_config(config);
  if (config.task.kind == TaskKind::language_model) config.model.encoder_layers = 0;
  if (config.train.threads > 0) set_threads(static_cast<int>(config.train.threads));
  check_writable_folder(config.train.output);
  has_run = holds_run(config, request.resume);
  FolderLock::check_free(config.train.output);
  check_fits_memory(config, available_memory());

  StartModel start;
  if (!config.start.from.empty() && !has_run) {
    start = read_start_model(config);
    config.model.vocabulary = start.config.vocabulary;
    config.model.pad = start.config.pad;
    config.model.begin = start.config.begin;
    config.model.end = start.config.end;
  }
  task = make_task(config, request.events, has_run ? config.train.output + "/tokenizer.json" : start.tokenizer);
  config.model.vocabulary = task->facts().vocabulary;
  loader = std::make_unique<Loader>(*task);
  steps = planned_steps(config, *task);
  check_fits_memory(config, available_memory());
  const auto store = std::make_shared<ParamStore>(
      ParamStoreOptions{.seed = static_cast<uint64_t>(config.train.seed), .compute = config.train.precision});
  task->make_model(store);
  if (!start.weights.empty()) store->take(start.weights);
  stepper = std::make_unique<Stepper>(store, stepper_options(config, steps));
}

std::vector<StepBatch> RunSetup::next_batches() const {
  std::vector<StepBatch> out;
  for (int64_t n = 0; n < config.train.accumulate; ++n) {
    const std::shared_ptr<const Batch> batch = loader->next();
    out.push_back({batch->tokens(), [this, batch](Pass& pass) { return task->loss(*batch, pass); }});
  }
  return out;
}

}  // namespace mh::detail
