// The loss of a classifier, whatever it reads.
#pragma once

#include <cstdint>
#include <vector>

#include "multihead/ops/rows/cross_entropy.h"

namespace mh {

// n / (classes · n of the class): every class counts the same in all, and the mean weight of an example is 1.
std::vector<float> balanced_weights(const std::vector<int32_t>& classes, int64_t count);

// Over rows, Σ weight · (-(1 - smoothing) log p[class] - smoothing · mean over classes of log p) / Σ weight, the weight
// that of the row's class; without weights all 1. `nll`: as cross_entropy. Throws: as cross_entropy.
CrossEntropy class_loss(const Tensor& logits, const std::vector<int32_t>& references, float smoothing,
                        const std::vector<float>& weights = {});

}  // namespace mh
