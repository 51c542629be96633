// AdamW over named tensors, with clipping and a running mean of the weights.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "multihead/autograd/gradients.h"
#include "multihead/tensor/named_tensors.h"
#include "multihead/tensor/tensor.h"

namespace mh {

// A tensor that is learned, in place: f32, traced; `copy` is kept equal to it, rounded to bf16, where there is one.
struct Learned {
  std::string name;
  Tensor value;
  Tensor copy{};
  double rate = 1;  // times the rate of a step
};

struct AdamWSettings {
  double beta1 = 0.9, beta2 = 0.98, epsilon = 1e-8, weight_decay = 0.01;
  double clip = 0;  // > 0: gradients are scaled down where their norm over all tensors is larger
  // > 0: a running mean of the weights w₁ … wₜ after each step, corrected for its start as Adam's moments are:
  // (1 - mean) · Σ mean^(t-i) · wᵢ / (1 - meanᵗ). After the first step it is w₁.
  double mean = 0;
};

// Loshchilov and Hutter, "Decoupled weight decay regularization" (2019); Adam is weight_decay = 0. Steps are bit-equal
// for any number of threads.
class AdamW {
 public:
  // Throws: invalid_argument for betas or a mean outside [0, 1), other settings, or rates, that are negative or not
  // finite, and a parameter that is given twice or is not traced f32.
  AdamW(std::vector<Learned> learned, const AdamWSettings& settings);

  // One step with this learning rate. A tensor without a gradient stays as it is. Returns the norm of all gradients
  // before clipping; where it is not finite, nothing changes and the step does not count. Throws:
  // invalid_argument for a rate that is negative or not finite.
  double step(const Gradients& gradients, double rate);

  int64_t steps() const { return steps_; }
  // The running means of the weights; empty where there are none. Before the first step, the weights of the beginning.
  NamedTensors means() const;

  // Moments and means by name, and the way back. Throws: invalid_argument where one is missing or has another shape.
  NamedTensors state() const;
  void restore(const NamedTensors& state, int64_t steps);

 private:
  struct Slot {
    Learned learned;
    Tensor m, v, mean;
  };
  AdamWSettings settings_;
  std::vector<Slot> slots_;
  int64_t steps_ = 0;
};

}  // namespace mh
