// Log-probabilities against targets, a table of them or one row of each sequence; labels for themselves; numbers.
#include "multihead/tasks/losses.h"

#include <cmath>
#include <vector>

#include "multihead/base/error.h"
#include "multihead/ops/elementwise.h"
#include "multihead/ops/rows/reduce.h"
#include "multihead/ops/shape.h"

namespace mh {

Tensor soft_cross_entropy(const Tensor& logits, const Tensor& t) {
  check(logits.rank() == 2 && logits.shape() == t.shape(),
        "soft_cross_entropy: logits and targets have different shapes; expected two of [rows, classes]; {} and {}",
        logits.shape(), t.shape());
  const ReduceOptions by_row{.axes = {-1}, .keep = true};
  // Any number may be taken away from a row; the largest keeps exp from overflowing.
  const Tensor z = sub(logits, max(logits.detach(), by_row));
  const Tensor log_p = sub(z, log(sum(exp(z), by_row)));
  return scale(sum(mul(log_p, t)), -1);
}

// The rows of each sequence beside each other, the shorter ones filled up with -inf, which has no probability.
// Smoothing takes smoothing · (x[target] - mean of x) from -log p[target], in which the sum of exponentials falls out.
CrossEntropy row_cross_entropy(const Tensor& logits, const Sequences& at, const Tensor& targets, float smoothing) {
  const int64_t rows = logits.count(), sequences = at.count();
  check(logits.rank() == 1 && rows == at.rows && targets.count() == sequences,
        "row_cross_entropy: {} logits and {} targets; expected the same number as rows and sequences, {} and {}", rows,
        targets.count(), at.rows, sequences);
  const int32_t *starts = at.starts.data<int32_t>(), *target = targets.data<int32_t>();
  std::vector<int32_t> places(static_cast<size_t>(sequences * at.longest), static_cast<int32_t>(rows));
  std::vector<float> smoothed(static_cast<size_t>(rows));
  for (int64_t n = 0; n < sequences; ++n) {
    const int32_t length = starts[n + 1] - starts[n];
    check(target[n] >= 0 && target[n] < length,
          "row_cross_entropy: the target of sequence {} is row {}; expected one of its {}", n, target[n], length);
    for (int32_t row = 0; row < length; ++row) {
      places[static_cast<size_t>(n * at.longest + row)] = starts[n] + row;
      smoothed[static_cast<size_t>(starts[n] + row)] = -1 / static_cast<float>(length);
    }
    smoothed[static_cast<size_t>(starts[n] + target[n])] += 1;
  }
  const Tensor none = tensor<float>(std::vector<float>{-INFINITY}, {1, 1});
  const Tensor padded =
      gather(concat({reshape(logits, {rows, 1}), none}, 0), tensor<int32_t>(places, {sequences, at.longest}));
  CrossEntropy out = cross_entropy(reshape(padded, {sequences, at.longest}), targets);
  if (smoothing > 0)
    out.loss = add(out.loss,
                   scale(sum(mul(logits, tensor<float>(smoothed, {rows}))), smoothing / static_cast<float>(sequences)));
  return out;
}

// Each element is a choice between 0 and its logit: what exp makes of neither overflows.
Tensor binary_cross_entropy(const Tensor& logits, const Tensor& t, float smoothing) {
  check(logits.shape() == t.shape(),
        "binary_cross_entropy: logits and targets have different shapes; expected one; {} and {}", logits.shape(),
        t.shape());
  const int64_t count = logits.count();
  std::vector<int32_t> targets(static_cast<size_t>(count));
  const Tensor wanted = t.contiguous();
  for (int64_t n = 0; n < count; ++n) {
    const float value = wanted.data<float>()[n];
    check(value == 0 || value == 1, "binary_cross_entropy: target {} is {}; expected 0 or 1", n, value);
    targets[static_cast<size_t>(n)] = value == 1 ? 1 : 0;
  }
  const Tensor pairs = concat({zeros({count, 1}), reshape(logits, {count, 1})}, 1);
  return cross_entropy(pairs, tensor<int32_t>(targets, {count}), {.smoothing = smoothing}).loss;
}

Tensor squared_error(const Tensor& x, const Tensor& t) {
  check(x.shape() == t.shape(), "squared_error: numbers and targets have different shapes; expected one; {} and {}",
        x.shape(), t.shape());
  return scale(sum(square(sub(x, t))), 1 / static_cast<float>(x.count()));
}

}  // namespace mh
