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
  corpus = read_corpus(config, request.events, has_run ? config.train.output + "/tokenizer.json" : start.tokenizer);
  config.model.vocabulary = corpus.tokenizer.size();
  loader = std::make_unique<Loader>(corpus.train, loader_options(config));
  steps = planned_steps(config, *loader);
  check_fits_memory(config, available_memory());
  stepper = std::make_unique<Stepper>(stepper_options(config, steps), start.weights);
}

}  // namespace mh::detail
