// Models made of a run's weights, and the better of them.
#include "multihead/train/model_choice.h"

#include <cmath>
#include <utility>

#include "multihead/ops/update.h"

namespace mh::detail {

namespace {

ModelChoice choice_of(const RunSetup& setup, bool mean) {
  NamedTensors weights = mean ? setup.stepper->optimiser().means() : setup.stepper->model().params().values();
  return {.model = std::make_unique<Transformer>(setup.config.model, std::make_shared<ParamStore>(std::move(weights))),
          .mean = mean};
}

// Before the first update there is nothing to take a mean of.
bool has_mean(const RunSetup& setup) { return setup.config.train.ema > 0 && setup.stepper->optimiser().steps() > 0; }

void judge(const RunSetup& setup, ModelChoice& choice, int64_t sentences) {
  choice.validation = validate(*choice.model, setup.corpus.tokenizer, setup.corpus.valid_text, setup.corpus.valid,
                               {.tokens_per_batch = setup.config.data.tokens_per_batch, .sentences = sentences});
}

}  // namespace

ModelChoice better_model(const RunSetup& setup, int64_t sentences) {
  ModelChoice weights = choice_of(setup, false);
  if (!has_mean(setup)) {
    judge(setup, weights, sentences);
    return weights;
  }
  ModelChoice mean = choice_of(setup, true);
  judge(setup, weights, 0);
  judge(setup, mean, 0);
  const bool mean_is_better = mean.validation.loss < weights.validation.loss || std::isnan(weights.validation.loss);
  ModelChoice& better = mean_is_better ? mean : weights;
  better.other_loss = (mean_is_better ? weights : mean).validation.loss;
  if (sentences > 0) judge(setup, better, sentences);
  return std::move(better);
}

ModelChoice newest_model(const RunSetup& setup) { return choice_of(setup, has_mean(setup)); }

bool is_finite(const Transformer& model) {
  for (const auto& [name, tensor] : model.params().values())
    if (!std::isfinite(sum_of_squares(tensor))) return false;
  return true;
}

}  // namespace mh::detail
