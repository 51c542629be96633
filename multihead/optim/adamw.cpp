// AdamW's steps and state.
#include "multihead/optim/adamw.h"

#include <cmath>

#include "multihead/ops/update.h"

namespace mh {

AdamW::AdamW(std::vector<Learned> learned, const AdamWSettings& settings) : settings_(settings) {
  for (Learned& each : learned) {
    Slot slot{.learned = each, .m = zeros(each.value.shape()), .v = zeros(each.value.shape()), .mean = {}};
    if (settings.mean > 0) {
      slot.mean = empty(each.value.shape());
      slot.mean.copy_from(each.value);
    }
    slots_.push_back(std::move(slot));
  }
}

double AdamW::step(const Gradients& gradients, double rate) {
  double squares = 0;
  for (const Slot& slot : slots_) {
    if (const Tensor g = gradients.find(slot.learned.value)) squares += sum_of_squares(g);
  }
  const double norm = std::sqrt(squares);
  if (!std::isfinite(norm)) return norm;
  ++steps_;
  const double scale = settings_.clip > 0 && norm > settings_.clip ? settings_.clip / norm : 1;
  const AdamwOptions options{.rate = static_cast<float>(rate),
                             .beta1 = static_cast<float>(settings_.beta1),
                             .beta2 = static_cast<float>(settings_.beta2),
                             .eps = static_cast<float>(settings_.epsilon),
                             .decay = static_cast<float>(settings_.weight_decay),
                             .step = steps_,
                             .gradient_scale = static_cast<float>(scale)};
  for (const Slot& slot : slots_) {
    const Tensor g = gradients.find(slot.learned.value);
    if (!g) continue;
    adamw({slot.learned.value.detach(), slot.m, slot.v, slot.learned.copy}, g, options);
    if (slot.mean) lerp(slot.mean, slot.learned.value.detach(), static_cast<float>(1 - settings_.mean));
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
