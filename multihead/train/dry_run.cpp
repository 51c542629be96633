// The first step of a run, in memory alone.
#include "multihead/train/dry_run.h"

#include <chrono>

#include "multihead/io/durable_file.h"
#include "multihead/train/corpus.h"
#include "multihead/train/loader.h"
#include "multihead/train/run_options.h"
#include "multihead/train/stepper.h"

namespace mh {

DryRun dry_run(const TrainRequest& request) {
  const TrainEvents& events = request.events;
  TrainConfig config = request.config;
  check_config(config);
  check_writable_folder(config.train.output);
  const bool has_run = detail::holds_run(config, request.resume);
  const Corpus corpus = read_corpus(config, events, has_run ? config.train.output + "/tokenizer.json" : "");
  config.model.vocabulary = corpus.tokenizer.size();
  Loader loader(corpus.train, detail::loader_options(config));
  const int64_t steps = detail::planned_steps(config, loader);
  Stepper stepper(detail::stepper_options(config, steps));
  DryRun out{.start = detail::train_start(corpus, stepper, steps)};
  if (events.on_start) events.on_start(out.start);

  const auto begin = std::chrono::steady_clock::now();
  std::vector<PairBatch> batches;
  for (int64_t i = 0; i < config.train.accumulate; ++i) batches.push_back(loader.next());
  out.loss = stepper.step(batches).loss;
  out.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return out;
}

}  // namespace mh
