// Which weights of a run are judged and shipped: those of the last step, or their running mean.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "multihead/models/transformer.h"
#include "multihead/train/run_setup.h"
#include "multihead/train/validation.h"

namespace mh::detail {

struct ModelChoice {
  std::unique_ptr<Transformer> model{};
  bool mean = false;                   // the running mean of the weights, else the weights themselves
  Validation validation{};             // of this model, where it was judged
  std::optional<double> other_loss{};  // of the other one, where there is one and it was judged
};

// The one with the lower validation loss; the weights where they are equal. `sentences` of the validation pairs are
// translated by it.
ModelChoice better_model(const RunSetup& setup, int64_t sentences);

// Unjudged: the running mean where one is kept, else the weights.
ModelChoice newest_model(const RunSetup& setup);

// Whether no weight is NaN or infinite.
bool is_finite(const Transformer& model);

}  // namespace mh::detail
