// activation and gated: checks and the kernels' calls.
#include "multihead/ops/rows/activation.h"

#include "multihead/autograd/tape.h"
#include "multihead/ops/rows/activation_run.h"
#include "multihead/ops/rows/rows.h"
#include "multihead/ops/run.h"

namespace mh {

using detail::dense;
using detail::rows_of;

Tensor detail::activation_gradient(std::string_view op, Activation kind, const Tensor& x, const Tensor& dy,
                                   float scale) {
  const Tensor dx = empty_like(dy), from = dense(x), d = dense(dy);
  run(&Table::activation_backward,
      {.x = from.view().data,
       .dy = d.view().data,
       .dx = dx.view().data,
       .type = dy.dtype(),
       .count = dx.count(),
       .kind = kernel_activation(op, kind),
       .scale = scale},
      x);
  return dx;
}

Tensor activation(const Tensor& x, Activation kind) {
  detail::check_float("activation", "x", x);
  const kernels::Activation known = detail::kernel_activation("activation", kind);
  if (kind == Activation::none) return x;

  const Tensor y = empty_like(x), from = dense(x);
  run(&Table::activation_forward,
      {.x = from.view().data, .y = y.view().data, .type = x.dtype(), .count = x.count(), .kind = known}, x);

  return record("activation", y, {x}, [from, kind](const Tensor& dy) {
    return Grads{detail::activation_gradient("activation", kind, from, dy)};
  });
}

Tensor gated(const Tensor& x, Activation kind) {
  detail::check_rows("gated", "x", x);
  detail::check_float("gated", "x", x);
  check(x.size(-1) % 2 == 0, "gated: the last axis of x has {} elements; expected two halves; x is {}", x.size(-1),
        x.shape());
  const kernels::Activation known = detail::kernel_activation("gated", kind);

  Shape shape = x.shape();
  shape[shape.rank() - 1] /= 2;
  const Tensor y = empty_on(x, shape, x.dtype());
  if (y.count() > 0) {
    const Tensor from = rows_of(x), to = rows_of(y);
    run(&Table::gated_forward, {.x = from.view(), .y = to.view(), .kind = known}, x);
  }

  return record("gated", y, {x}, [x = x.detach(), known](const Tensor& dy) {
    const Tensor dx = empty_like(x);
    if (dx.count() > 0) {
      const Tensor from = rows_of(x), d = rows_of(dy), to = rows_of(dx);
      run(&Table::gated_backward, {.x = from.view(), .dy = d.view(), .dx = to.view(), .kind = known}, x);
    }
    return Grads{dx};
  });
}

}  // namespace mh
