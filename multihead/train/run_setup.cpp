// From a configuration to what the first step needs.
#include "multihead/train/run_setup.h"

#include "multihead/base/available_memory.h"
#include "multihead/base/parallel.h"
#include "multihead/io/durable_file.h"
#include "multihead/io/folder_lock.h"
#include "multihead/tasks/models/text_model.h"
#include "multihead/tasks/task_type.h"
#include "multihead/train/config/run_options.h"
#include "multihead/train/memory_need.h"
#include "multihead/train/parameter_depth.h"
#include "multihead/train/start_model.h"

namespace mh::detail {

namespace {

ParamStoreOptions store_options(const TrainConfig& config) {
  ParamStoreOptions out{.seed = static_cast<uint64_t>(config.train.seed), .compute = config.train.precision};
  // Of an encoder alone, which may be one of a folder with more layers, all of them.
  const bool is_alone = !task_type(config.task.kind).decoder;
  const ModelDepth below{.encoder = is_alone ? kAnyLayers : config.model.encoder_layers};
  if (const int64_t frozen = config.train.frozen; frozen > 0)
    out.is_frozen = [frozen, below](const std::string& name) { return is_frozen(name, below, frozen); };
  return out;
}

std::unique_ptr<Stepper> make_stepper(const TrainConfig& config, std::shared_ptr<ParamStore> store, int64_t steps) {
  const ModelDepth depth = depth_of(*store);
  check(config.train.frozen <= depth.layers(),
        "config: train.frozen is {}, and the model has {} layers; expected at most as many", config.train.frozen,
        depth.layers());
  StepperOptions options = stepper_options(config, steps);
  if (const double decay = config.train.layer_decay; decay < 1)
    options.rate_of = [depth, decay](const std::string& name) {
      return rate_at_level(parameter_level(name, depth), depth, decay);
    };
  return std::make_unique<Stepper>(std::move(store), options);
}

}  // namespace

RunSetup::RunSetup(const TrainRequest& request) : config(request.config) {
  check_config(config);
  const TaskType& type = task_type(config.task.kind);
  if (!type.encoder) config.model.encoder_layers = 0;
  if (!type.decoder) config.model.decoder_layers = 1;
  if (config.train.threads > 0) set_threads(static_cast<int>(config.train.threads));
  check_writable_folder(config.train.output);
  has_run = holds_run(config, request.resume);
  FolderLock::check_free(config.train.output);
  check_fits_memory(config, available_memory());

  StartFolder start;
  if (!config.start.from.empty() && !has_run && !(type.families && is_pretrained_folder(config.start.from))) {
    start = read_start_model(config);
    config.model.vocabulary = start.model.config.vocabulary;
    config.model.pad = start.model.config.pad;
    config.model.begin = start.model.config.begin;
    config.model.end = start.model.config.end;
  }
  task = make_task(config, request.events, has_run ? config.train.output + "/tokenizer.json" : start.tokenizer);
  config.model.vocabulary = task->facts().vocabulary;
  loader = std::make_unique<Loader>(*task);
  steps = planned_steps(config, *task);
  check_fits_memory(config, available_memory());
  const auto store = std::make_shared<ParamStore>(store_options(config));
  task->make_model(store);
  if (!start.model.weights.empty()) store->take(start.model.weights);
  stepper = make_stepper(config, store, steps);
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
