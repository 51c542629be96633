// AdamW's steps and state.
#include "multihead/optim/adamw.h"

#include <cmath>
#include <set>

#include "multihead/ops/update.h"

namespace mh {

namespace {

// Betas and means are told to the kernels in f32, where a number just below 1 may be 1.
bool is_share(double x) { return x >= 0 && static_cast<float>(x) < 1; }

bool is_size(double x) { return x >= 0 && std::isfinite(static_cast<float>(x)); }

void check_settings(const AdamWSettings& s) {
  check(is_share(s.beta1) && is_share(s.beta2), "AdamW: the betas are {} and {}; expected both in [0, 1)", s.beta1,
        s.beta2);
  check(is_share(s.mean), "AdamW: the mean's share of the past is {}; expected a number in [0, 1)", s.mean);
  check(is_size(s.epsilon), "AdamW: epsilon is {}; expected a finite number, 0 or more", s.epsilon);
  check(is_size(s.weight_decay), "AdamW: the weight decay is {}; expected a finite number, 0 or more", s.weight_decay);
  check(is_size(s.clip), "AdamW: the norm to clip at is {}; expected a finite number, 0 or more", s.clip);
}

void check_learned(const std::vector<Learned>& learned) {
  std::set<std::string> names;
  std::set<const void*> places;
  for (const auto& [name, value, copy, rate] : learned) {
    check(value && value.dtype() == DType::f32 && value.trace() != 0 && value.trace() != kCutTrace,
          "AdamW: {} cannot be learned; expected an f32 tensor that parameter() made; it is {} {}", name,
          mh::name(value.dtype()), value.shape());
    check(is_size(rate), "AdamW: the rate of {} is {}; expected a finite number, 0 or more", name, rate);
    check(names.insert(name).second, "AdamW: two parameters are named {}; expected each name once", name);
    check(value.count() == 0 || places.insert(value.view().data).second,
          "AdamW: {} is given twice, under two names; expected each parameter once; it is {}", name, value.shape());
  }
}

}  // namespace

AdamW::AdamW(std::vector<Learned> learned, const AdamWSettings& settings) : settings_(settings) {
  check_settings(settings);
  check_learned(learned);
  for (Learned& each : learned) {
    const Device device = each.value.device();
    const auto none = [&] { return zeros(each.value.shape(), DType::f32, device); };
    Slot slot{.learned = each, .m = none(), .v = none(), .mean = {}};
    if (settings.mean > 0) {
      slot.mean = empty(each.value.shape(), DType::f32, device);
      slot.mean.copy_from(each.value);
    }
    slots_.push_back(std::move(slot));
  }
}

double AdamW::step(const Gradients& gradients, double rate) {
  check(is_size(rate), "AdamW: the learning rate is {}; expected a finite number, 0 or more", rate);
  double squares = 0;
  for (const Slot& slot : slots_) {
    if (const Tensor g = gradients.find(slot.learned.value)) squares += sum_of_squares(g);
  }
  const double norm = std::sqrt(squares);
  if (!std::isfinite(norm)) return norm;
  ++steps_;
  const double scale = settings_.clip > 0 && norm > settings_.clip ? settings_.clip / norm : 1;
  AdamwOptions options{.beta1 = static_cast<float>(settings_.beta1),
                       .beta2 = static_cast<float>(settings_.beta2),
                       .eps = static_cast<float>(settings_.epsilon),
                       .decay = static_cast<float>(settings_.weight_decay),
                       .step = steps_,
                       .gradient_scale = static_cast<float>(scale)};
  const double part = (1 - settings_.mean) / (1 - std::pow(settings_.mean, static_cast<double>(steps_)));
  for (const Slot& slot : slots_) {
    const Tensor value = slot.learned.value.detach();
    options.rate = static_cast<float>(rate * slot.learned.rate);
    if (const Tensor g = gradients.find(slot.learned.value))
      adamw({value, slot.m, slot.v, slot.learned.copy}, g, options);
    if (!slot.mean) continue;
    if (steps_ == 1)
      slot.mean.copy_from(value);
    else
      lerp(slot.mean, value, static_cast<float>(part));
  }
  return norm;
}

NamedTensors AdamW::means() const {
  NamedTensors out;
  for (const Slot& slot : slots_) {
    if (slot.mean) out[slot.learned.name] = slot.mean;
  }
  return out;
}

NamedTensors AdamW::state() const {
  NamedTensors out;
  for (const Slot& slot : slots_) {
    out["m." + slot.learned.name] = slot.m;
    out["v." + slot.learned.name] = slot.v;
    if (slot.mean) out["mean." + slot.learned.name] = slot.mean;
  }
  return out;
}

void AdamW::restore(const NamedTensors& state, int64_t steps) {
  check(steps >= 0, "AdamW: the state is of step {}; expected 0 or more", steps);
  const NamedTensors mine = AdamW::state();
  for (const auto& [name, tensor] : mine) {
    const auto at = state.find(name);
    check(at != state.end() && at->second.shape() == tensor.shape(), "AdamW: no fitting state for {}; expected {}",
          name, tensor.shape());
  }
  for (const auto& [name, tensor] : mine) tensor.copy_from(state.at(name));
  steps_ = steps;
}

}  // namespace mh
