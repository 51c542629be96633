// One step of training: forward, backward, update.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "multihead/nn/params.h"
#include "multihead/nn/pass.h"
#include "multihead/ops/rows/cross_entropy.h"
#include "multihead/optim/adamw.h"
#include "multihead/optim/schedule.h"

namespace mh {

struct StepperOptions {
  AdamWSettings optimiser{};
  Schedule schedule{};
  DType compute = DType::f32;  // bf16: products and attention in bf16, master weights and the sum of the layers in f32
  uint64_t seed = 1;           // of dropout
  // Of a parameter, by name: times the schedule's rate. Empty: 1.
  std::function<double(const std::string&)> rate_of{};
};

// A batch as a step sees it.
struct StepBatch {
  int64_t tokens = 0;                         // whose loss counts
  std::function<CrossEntropy(Pass&)> loss{};  // its forward pass
};

struct StepResult {
  double loss = 0;  // that is trained on, per token: label-smoothed where the task smooths
  double nll = 0;   // the plain negative log-likelihood, per token
  int64_t tokens = 0;
  double norm = 0;  // of the gradients before clipping; not finite: the step was skipped
  double rate = 0;
};

// A model's parameters with their optimiser; those that are frozen stay as they are, without moments or a mean. What a
// step computes depends on the options, the number of steps before and the batches, never on the number of threads: a
// run that goes on from a saved state has the bits of one that never stopped.
class Stepper {
 public:
  // Throws: as AdamW; invalid_argument where every parameter is frozen.
  Stepper(std::shared_ptr<ParamStore> store, const StepperOptions& options);
  // The gradients of several batches count as those of one batch with all their tokens.
  StepResult step(const std::vector<StepBatch>& batches);

  int64_t steps() const { return steps_; }
  const ParamStore& params() const { return *store_; }
  const AdamW& optimiser() const { return *optimiser_; }

  // Weights and moments by name ("model.…", "adam.…"), and the way back.
  NamedTensors state() const;
  void restore(const NamedTensors& state, int64_t steps, int64_t updates);

  // Exchanges the weights and their running mean; a second call undoes it, bit for bit. `scratch` has room for the
  // largest parameter: f32, empty_scratch().
  void exchange_mean(const Tensor& scratch);
  Tensor empty_scratch() const;

 private:
  StepperOptions options_;
  std::shared_ptr<ParamStore> store_;
  std::unique_ptr<AdamW> optimiser_;
  int64_t steps_ = 0;
};

}  // namespace mh
