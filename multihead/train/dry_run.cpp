// The first step of a run, in memory alone.
#include "multihead/train/dry_run.h"

#include <chrono>

#include "multihead/train/config/run_options.h"
#include "multihead/train/memory_need.h"
#include "multihead/train/run_setup.h"

namespace mh {

namespace {

DryRun first_step(const TrainRequest& request) {
  const TrainEvents& events = request.events;
  const detail::RunSetup setup(request);
  DryRun out{.start = detail::train_start(*setup.task, *setup.stepper, setup.steps)};
  if (events.on_start) events.on_start(out.start);

  const auto begin = std::chrono::steady_clock::now();
  out.loss = setup.stepper->step(setup.next_batches()).loss;
  out.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return out;
}

}  // namespace

DryRun dry_run(const TrainRequest& request) {
  return detail::within_memory_of(request.config, [&] { return first_step(request); });
}

}  // namespace mh
