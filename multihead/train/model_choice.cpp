// The weights of a run or their mean, judged in turn in the one model there is.
#include "multihead/train/model_choice.h"

#include <cmath>

#include "multihead/ops/update.h"

namespace mh::detail {

namespace {

// Before the first update there is nothing to take a mean of.
bool has_mean(const RunSetup& setup) { return setup.config.train.ema > 0 && setup.stepper->optimiser().steps() > 0; }

Verdict judged(const RunSetup& setup, bool answers) {
  return setup.task->validate({.compute = setup.config.train.precision, .answers = answers});
}

}  // namespace

MeanInPlace::MeanInPlace(Stepper& stepper) : stepper_(stepper), scratch_(stepper.empty_scratch()) {
  stepper_.exchange_mean(scratch_);
}

MeanInPlace::~MeanInPlace() { stepper_.exchange_mean(scratch_); }

ModelChoice better_model(const RunSetup& setup) {
  ModelChoice choice;
  if (!has_mean(setup)) {
    choice.verdict = judged(setup, true);
    return choice;
  }
  const Watched watched = setup.task->facts().watched;
  const double weights = judged(setup, false).watched();
  choice.in_place = std::make_unique<MeanInPlace>(*setup.stepper);
  const double mean = judged(setup, false).watched();
  const bool mean_is_better = watched.cost(mean) < watched.cost(weights) || std::isnan(weights);
  if (!mean_is_better) choice.in_place.reset();
  choice.other_value = mean_is_better ? weights : mean;
  choice.verdict = judged(setup, true);
  return choice;
}

ModelChoice newest_model(const RunSetup& setup) {
  ModelChoice choice;
  if (has_mean(setup)) choice.in_place = std::make_unique<MeanInPlace>(*setup.stepper);
  return choice;
}

bool is_finite(const ParamStore& params) {
  for (const auto& param : params.all())
    if (!std::isfinite(sum_of_squares(param->value.detach()))) return false;
  return true;
}

}  // namespace mh::detail
