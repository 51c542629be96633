// What a forward pass is told besides its inputs: training or not, in which type, with which random numbers.
#pragma once

#include <cstdint>

#include "multihead/base/dtype.h"
#include "multihead/ops/rows/dropout.h"

namespace mh {

class AttentionObserver;

// One per pass. In training every dropout gets a seed of its own, drawn in the order of the calls; a copy of the pass
// draws the same ones again.
class Pass {
 public:
  static Pass inference(DType compute = DType::f32) { return Pass(false, 0, compute); }
  static Pass training(uint64_t seed, DType compute = DType::f32) { return Pass(true, seed, compute); }

  bool is_training() const { return training_; }
  // The type of what the matrix products and attention read: f32 or bf16. The sum of the layers stays f32.
  DType compute() const { return compute_; }
  // The same pass, of whose calls of attention `observer` hears (nn/attention_observer.h); null: nobody.
  Pass watched_by(AttentionObserver* observer) const {
    Pass watched = *this;
    watched.observer_ = observer;
    return watched;
  }
  AttentionObserver* observer() const { return observer_; }
  // p, or 0 outside training.
  DropoutOptions dropout(float p) {
    if (!training_ || p == 0) return {};
    return {p, mixed(seed_ + 0x9E3779B97F4A7C15 * ++drawn_)};
  }

 private:
  Pass(bool training, uint64_t seed, DType compute) : seed_(seed), training_(training), compute_(compute) {}
  // The finaliser of SplitMix64 (Steele, Lea, Flood, 2014): neighbouring numbers become unrelated ones.
  static uint64_t mixed(uint64_t x) {
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
    return x ^ (x >> 31);
  }

  uint64_t seed_;
  uint64_t drawn_ = 0;
  bool training_;
  DType compute_;
  AttentionObserver* observer_ = nullptr;
};

}  // namespace mh
