// The training step.
#include "multihead/train/stepper.h"

#include "multihead/autograd/tape.h"

namespace mh {

namespace {

std::vector<Learned> learned_of(const ParamStore& store) {
  std::vector<Learned> out;
  for (const auto& param : store.all()) out.push_back({param->name, param->value, param->copy});
  return out;
}

constexpr std::string_view kModel = "model.", kAdam = "adam.";

// The entries whose names begin with `prefix`, without it.
NamedTensors below(const NamedTensors& all, std::string_view prefix) {
  NamedTensors out;
  for (const auto& [name, tensor] : all) {
    if (name.starts_with(prefix)) out[name.substr(prefix.size())] = tensor;
  }
  return out;
}

}  // namespace

Stepper::Stepper(const StepperOptions& options, const NamedTensors& start)
    : options_(options),
      store_(std::make_shared<ParamStore>(ParamStoreOptions{.seed = options.seed, .compute = options.compute})),
      model_(std::make_unique<Transformer>(options.model, store_)) {
  if (!start.empty()) store_->take(start);
  optimiser_ = std::make_unique<AdamW>(learned_of(*store_), options.optimiser);
}

StepResult Stepper::step(const std::vector<PairBatch>& batches) {
  StepResult result{.rate = options_.schedule.at(steps_)};
  for (const PairBatch& batch : batches) result.tokens += batch.target_tokens();
  Gradients gradients;
  for (size_t n = 0; n < batches.size(); ++n) {
    const uint64_t numbers = static_cast<uint64_t>(steps_) * 4096 + n;
    Pass pass = Pass::training(options_.seed ^ (0xD1B54A32D192ED03 * (numbers + 1)), options_.compute);
    Tape tape;
    const CrossEntropy entropy = model_->loss(batches[n], pass, options_.smoothing);
    const double share = static_cast<double>(batches[n].target_tokens()) / static_cast<double>(result.tokens);
    tape.backward({entropy.loss}, {full(entropy.loss.shape(), share)}, gradients);
    result.loss += share * entropy.loss.item({});
    result.nll += entropy.nll.item({}) / static_cast<double>(result.tokens);
  }
  result.norm = optimiser_->step(gradients, result.rate);
  ++steps_;
  return result;
}

NamedTensors Stepper::state() const {
  NamedTensors out;
  for (const auto& [name, tensor] : store_->values()) out[std::string(kModel) + name] = tensor;
  for (const auto& [name, tensor] : optimiser_->state()) out[std::string(kAdam) + name] = tensor;
  return out;
}

void Stepper::restore(const NamedTensors& state, int64_t steps, int64_t updates) {
  optimiser_->restore(below(state, kAdam), updates);
  store_->take(below(state, kModel));
  steps_ = steps;
}

}  // namespace mh
