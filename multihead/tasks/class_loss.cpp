// Smoothed and weighted targets.
#include "multihead/tasks/class_loss.h"

#include <algorithm>

#include "multihead/tasks/losses.h"
#include "multihead/tensor/tensor.h"

namespace mh {

namespace {

// (rows, classes): weight · ((1 - smoothing) · onehot + smoothing / classes), over the sum of the weights.
Tensor weighted_targets(const std::vector<int32_t>& references, const std::vector<float>& weights, float smoothing) {
  const auto rows = static_cast<int64_t>(references.size()), classes = static_cast<int64_t>(weights.size());
  const Tensor out = empty({rows, classes});
  float all = 0;
  for (const int32_t c : references) all += weights[static_cast<size_t>(c)];
  for (int64_t n = 0; n < rows; ++n) {
    const auto right = static_cast<size_t>(references[static_cast<size_t>(n)]);
    const float weight = weights[right] / all;
    float* t = out.data<float>() + n * classes;
    std::fill_n(t, classes, weight * smoothing / static_cast<float>(classes));
    t[right] += weight * (1 - smoothing);
  }
  return out;
}

}  // namespace

std::vector<float> balanced_weights(const std::vector<int32_t>& classes, int64_t count) {
  std::vector<int64_t> sizes(static_cast<size_t>(count));
  for (const int32_t c : classes) ++sizes[static_cast<size_t>(c)];
  std::vector<float> out;
  for (const int64_t size : sizes)
    out.push_back(static_cast<float>(static_cast<double>(classes.size()) / static_cast<double>(count * size)));
  return out;
}

CrossEntropy class_loss(const Tensor& logits, const std::vector<int32_t>& references, float smoothing,
                        const std::vector<float>& weights) {
  CrossEntropy out = cross_entropy(logits, tensor<int32_t>(references, {static_cast<int64_t>(references.size())}),
                                   {.smoothing = smoothing});
  if (!weights.empty()) out.loss = soft_cross_entropy(logits, weighted_targets(references, weights, smoothing));
  return out;
}

}  // namespace mh
