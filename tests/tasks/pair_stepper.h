// A Transformer that is trained on pair batches, step by step.
#pragma once

#include <memory>
#include <vector>

#include "multihead/models/transformer.h"
#include "multihead/train/stepper.h"

namespace mh {

struct PairStepperOptions {
  TransformerConfig model{};
  AdamWSettings optimiser{};
  Schedule schedule{};
  float smoothing = 0.1F;
  DType compute = DType::f32;
  uint64_t seed = 1;
  Device device{};
};

class PairStepper {
 public:
  explicit PairStepper(const PairStepperOptions& options)
      : options_(options),
        store_(std::make_shared<ParamStore>(
            ParamStoreOptions{.seed = options.seed, .compute = options.compute, .device = options.device})),
        model_(std::make_unique<Transformer>(options.model, store_)),
        stepper_(store_, {options.optimiser, options.schedule, options.compute, options.seed}) {}

  StepResult step(const std::vector<PairBatch>& batches) {
    std::vector<StepBatch> each;
    for (const PairBatch& batch : batches)
      each.push_back(
          {batch.target_tokens(), [&](Pass& pass) { return model_->loss(batch, pass, options_.smoothing); }});
    return stepper_.step(each);
  }

  Transformer& model() { return *model_; }
  Stepper& stepper() { return stepper_; }
  const Stepper& stepper() const { return stepper_; }
  int64_t steps() const { return stepper_.steps(); }
  const AdamW& optimiser() const { return stepper_.optimiser(); }
  NamedTensors state() const { return stepper_.state(); }
  void restore(const NamedTensors& state, int64_t steps, int64_t updates) { stepper_.restore(state, steps, updates); }

 private:
  PairStepperOptions options_;
  std::shared_ptr<ParamStore> store_;
  std::unique_ptr<Transformer> model_;
  Stepper stepper_;
};

}  // namespace mh
