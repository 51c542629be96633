// The training step.
#include "multihead/train/stepper.h"

#include <algorithm>
#include <utility>

#include "multihead/autograd/tape.h"

namespace mh {

namespace {

bool is_learned(const Param& param) { return param.value.trace() != 0; }

std::vector<Learned> learned_of(const ParamStore& store, const StepperOptions& options) {
  std::vector<Learned> out;
  for (const auto& param : store.all()) {
    if (!is_learned(*param)) continue;
    out.push_back({param->name, param->value, param->copy, options.rate_of ? options.rate_of(param->name) : 1});
  }
  check(!out.empty() || store.all().empty(), "train: all parameters are frozen; expected some that are learned");
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

Stepper::Stepper(std::shared_ptr<ParamStore> store, const StepperOptions& options)
    : options_(options),
      store_(std::move(store)),
      optimiser_(std::make_unique<AdamW>(learned_of(*store_, options), options.optimiser)) {}

StepResult Stepper::step(const std::vector<StepBatch>& batches) {
  StepResult result{.rate = options_.schedule.at(steps_)};
  for (const StepBatch& batch : batches) result.tokens += batch.tokens;
  Gradients gradients;
  for (size_t n = 0; n < batches.size(); ++n) {
    const uint64_t numbers = static_cast<uint64_t>(steps_) * 4096 + n;
    Pass pass = Pass::training(options_.seed ^ (0xD1B54A32D192ED03 * (numbers + 1)), options_.compute);
    Tape tape;
    const CrossEntropy entropy = batches[n].loss(pass);
    const double share = static_cast<double>(batches[n].tokens) / static_cast<double>(result.tokens);
    tape.backward({entropy.loss}, {full(entropy.loss.shape(), share, DType::f32, entropy.loss.device())}, gradients);
    result.loss += share * entropy.loss.to(Device{}).item({});
    result.nll += entropy.nll.to(Device{}).item({}) / static_cast<double>(result.tokens);
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

Tensor Stepper::empty_scratch() const {
  int64_t largest = 0;
  for (const auto& param : store_->all()) largest = std::max(largest, param->value.count());
  return empty({largest}, DType::f32, store_->options().device);
}

void Stepper::exchange_mean(const Tensor& scratch) {
  const NamedTensors means = optimiser_->means();
  for (const auto& param : store_->all()) {
    if (!is_learned(*param)) continue;
    const Tensor weight = param->value.detach(), &mean = means.at(param->name);
    const Tensor kept = scratch.slice(0, 0, weight.count()).reshape(weight.shape());
    kept.copy_from(weight);
    weight.copy_from(mean);
    mean.copy_from(kept);
  }
  store_->refresh_copies();
}

}  // namespace mh
