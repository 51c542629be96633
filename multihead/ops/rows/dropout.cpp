// dropout and dropout_add: one kernel for both, forward and backward.
#include "multihead/ops/rows/dropout.h"

#include <cmath>

#include "multihead/autograd/tape.h"
#include "multihead/ops/rows/dropout_run.h"
#include "multihead/ops/rows/rows.h"
#include "multihead/ops/run.h"

namespace mh {

namespace {

uint32_t threshold_of(std::string_view op, float p) {
  check(p >= 0 && p <= 1, "{}: p is {}; expected 0 to 1", op, p);
  return static_cast<uint32_t>(std::lround(static_cast<double>(p) * 65536));
}

// y = residual + dropout(x), all contiguous; an empty residual counts as 0.
void run_into(const Tensor& y, const Tensor& x, const Tensor& residual, uint32_t threshold, uint64_t seed) {
  if (y.count() == 0) return;
  run(&Table::dropout,
      {.x = x.view().data,
       .x_type = x.dtype(),
       .residual = residual ? residual.view().data : nullptr,
       .y = y.view().data,
       .y_type = y.dtype(),
       .count = y.count(),
       .threshold = threshold,
       .seed = seed},
      y);
}

Tensor dropped(const Tensor& x, const Tensor& residual, DType result, uint32_t threshold, uint64_t seed) {
  const Tensor y = empty(x.shape(), result, x.device());
  run_into(y, detail::dense(x), residual ? detail::dense(residual) : Tensor(), threshold, seed);
  return y;
}

}  // namespace

float detail::kept_scale(std::string_view op, const DropoutOptions& options) {
  const uint32_t threshold = threshold_of(op, options.p);
  return threshold >= 65536 ? 0.0F : 65536.0F / (65536.0F - static_cast<float>(threshold));
}

float detail::drop_in_place(std::string_view op, const Tensor& x, const DropoutOptions& options) {
  const uint32_t threshold = threshold_of(op, options.p);
  if (threshold > 0) run_into(x, x, {}, threshold, options.seed);
  return kept_scale(op, options);
}

Tensor dropout(const Tensor& x, const DropoutOptions& options) {
  detail::check_float("dropout", "x", x);
  const uint32_t threshold = threshold_of("dropout", options.p);
  if (threshold == 0) return x;

  const Tensor y = dropped(x, {}, x.dtype(), threshold, options.seed);

  return record("dropout", y, {x}, [type = x.dtype(), threshold, seed = options.seed](const Tensor& dy) {
    return Grads{dropped(dy, {}, type, threshold, seed)};
  });
}

Tensor dropout_add(const Tensor& x, const Tensor& residual, const DropoutOptions& options) {
  detail::check_float("dropout_add", "x", x);
  detail::check_float("dropout_add", "residual", residual);
  detail::check_types("dropout_add", x.dtype(), residual.dtype());
  check(x.shape() == residual.shape(), "dropout_add: x and residual differ in shape; x is {}, residual is {}",
        x.shape(), residual.shape());
  detail::check_devices("dropout_add", {&x, &residual});
  const uint32_t threshold = threshold_of("dropout_add", options.p);

  const Tensor y = dropped(x, residual, residual.dtype(), threshold, options.seed);

  return record("dropout_add", y, {x, residual}, [type = x.dtype(), threshold, seed = options.seed](const Tensor& dy) {
    if (threshold == 0) return Grads{dy.to(type), dy};
    return Grads{dropped(dy, {}, type, threshold, seed), dy};
  });
}

}  // namespace mh
