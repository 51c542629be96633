// Which weights of a run are judged and shipped: those of the last step, or their running mean.
#pragma once

#include <memory>
#include <optional>

#include "multihead/tasks/task.h"
#include "multihead/train/run_setup.h"

namespace mh::detail {

// While it lives, the running mean stands in the place of the weights: no second model is made.
class MeanInPlace {
 public:
  explicit MeanInPlace(Stepper& stepper);
  ~MeanInPlace();
  MeanInPlace(const MeanInPlace&) = delete;
  MeanInPlace& operator=(const MeanInPlace&) = delete;

 private:
  Stepper& stepper_;
  Tensor scratch_;
};

// The task's model has the chosen weights for as long as the choice lives.
struct ModelChoice {
  std::unique_ptr<MeanInPlace> in_place{};  // the running mean of the weights is chosen; else the weights themselves
  Verdict verdict{};                        // of this model, where it was judged
  std::optional<double> other_value{};      // the watched metric of the other one, where it was judged

  bool mean() const { return in_place != nullptr; }
};

// The one with the better watched metric, in the precision of the run; the weights where they are equal.
ModelChoice better_model(const RunSetup& setup);

// Unjudged: the running mean where one is kept, else the weights.
ModelChoice newest_model(const RunSetup& setup);

// Whether no weight is NaN or infinite.
bool is_finite(const ParamStore& params);

}  // namespace mh::detail
