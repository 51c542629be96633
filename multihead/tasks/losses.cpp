// Log-probabilities against a table of targets.
#include "multihead/tasks/losses.h"

#include "multihead/base/error.h"
#include "multihead/ops/elementwise.h"
#include "multihead/ops/rows/reduce.h"

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

}  // namespace mh
