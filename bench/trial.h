// The protocol of a measurement: trials between two turns of a reference loop, and what is made of them.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "multihead/tensor/tensor.h"

namespace mh::bench {

// What is measured: one call, and the operations or bytes it counts for.
struct Subject {
  std::function<void()> run;
  double work = 0;
};

// What bounds it: f32 multiply-adds, bf16 pair or tile products, or a plain read of the very memory the subject reads.
enum class Bound { multiply_adds, pair_products, tile_products, plain_read };
struct Reference {
  Bound bound = Bound::multiply_adds;
  std::vector<Tensor> memory;  // plain_read
};

struct Budget {
  double seconds = 0.5;  // of wall time for all trials together
  int least = 9;         // trials, however long they take
};

// Medians over the trials, but for fraction_p90. A fraction is the rate over the mean of the two reference turns around
// it. On tiles, trials in the unit's fast state count alone where there are any.
struct Outcome {
  double seconds = 0;  // of one call
  double rate = 0;     // work per second
  double fraction = 0, fraction_p90 = 0;
  std::optional<double> ratio;  // seconds of one call over those of the plain subject beside it
  int trials = 0, fast = 0, slow = 0;
  double fast_rate = 0, slow_rate = 0;
};

// Calls each subject until a trial lasts 2 ms or more. With `plain`, a call of it stands beside every trial.
Outcome measure(const Subject& subject, const Reference& reference, const Budget& budget,
                const Subject* plain = nullptr);

// The element of sorted `values` below which the share `part` of them lies.
double quantile(std::vector<double> values, double part);

}  // namespace mh::bench
