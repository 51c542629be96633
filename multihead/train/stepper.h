// One step of training: forward, backward, update.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "multihead/models/transformer.h"
#include "multihead/optim/adamw.h"
#include "multihead/optim/schedule.h"

namespace mh {

struct StepperOptions {
  TransformerConfig model{};
  AdamWSettings optimiser{};
  Schedule schedule{};
  float smoothing = 0.1F;
  DType compute = DType::f32;  // bf16: products and attention in bf16, master weights and the sum of the layers in f32
  uint64_t seed = 1;           // of fresh weights and of dropout
};

struct StepResult {
  double loss = 0;  // label-smoothed, a token
  double nll = 0;   // the plain negative log-likelihood, a token
  int64_t tokens = 0;
  double norm = 0;  // of the gradients before clipping; not finite: the step was left out
  double rate = 0;
};

// A model with its optimiser. What a step computes depends on the options, the number of steps before and the batches,
// never on the number of threads: a run that goes on from a saved state has the bits of one that never stopped.
class Stepper {
 public:
  // With fresh weights, or those of `start`. Throws: invalid_argument where `start` lacks a parameter or has it with
  // another shape.
  explicit Stepper(const StepperOptions& options, const NamedTensors& start = {});
  // The gradients of several batches count as those of one batch with all their tokens.
  StepResult step(const std::vector<PairBatch>& batches);

  int64_t steps() const { return steps_; }
  const Transformer& model() const { return *model_; }
  Transformer& model() { return *model_; }
  const AdamW& optimiser() const { return *optimiser_; }

  // Weights and moments by name ("model.…", "adam.…"), and the way back.
  NamedTensors state() const;
  void restore(const NamedTensors& state, int64_t steps, int64_t updates);

 private:
  StepperOptions options_;
  std::shared_ptr<ParamStore> store_;
  std::unique_ptr<Transformer> model_;
  std::unique_ptr<AdamW> optimiser_;
  int64_t steps_ = 0;
};

}  // namespace mh
