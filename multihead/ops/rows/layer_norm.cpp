// layer_norm and rms_norm: checks, statistics kept for the way back.
#include "multihead/ops/rows/layer_norm.h"

#include "multihead/autograd/tape.h"
#include "multihead/ops/rows/rows.h"
#include "multihead/ops/run.h"

namespace mh {

namespace {

using detail::rows_of;

float* floats(const Tensor& x) { return x ? x.view().as<float>() : nullptr; }

struct Norm {
  std::string_view op;
  bool centred;
};

// What the way back needs. `mean` is empty for RMS norm.
struct SavedNorm {
  Tensor x, gamma, mean, rstd;
  bool wants_dbeta;
};

Grads norm_backward(const SavedNorm& saved, const Tensor& dy, const Tensor& gathered) {
  const Tensor x = rows_of(saved.x), d = rows_of(dy);
  const Tensor dx = gathered ? gathered : empty_like(saved.x);
  const Shape width{x.size(1)};
  const Tensor dgamma = saved.gamma ? zeros_on(x, width) : Tensor(),
               dbeta = saved.wants_dbeta ? zeros_on(x, width) : Tensor();
  if (x.count() > 0) {
    const Tensor dx_rows = rows_of(dx);
    run(&Table::normalise_backward,
        {.x = x.view(),
         .dy = d.view(),
         .dx = dx_rows.view(),
         .add = static_cast<bool>(gathered),
         .gamma = floats(saved.gamma),
         .mean = floats(saved.mean),
         .rstd = floats(saved.rstd),
         .dgamma = floats(dgamma),
         .dbeta = floats(dbeta)},
        saved.x);
  }
  return {dx, dgamma, dbeta};
}

Tensor normalise(const Norm& norm, const Tensor& x, const Tensor& gamma, const Tensor& beta,
                 const NormOptions& options) {
  detail::check_rows(norm.op, "x", x);
  detail::check_float(norm.op, "x", x);
  const DType result = options.result.value_or(x.dtype());
  detail::check_types(norm.op, x.dtype(), result);
  detail::check_parameter(norm.op, "gamma", gamma, x);
  detail::check_parameter(norm.op, "beta", beta, x);
  detail::check_devices(norm.op, {&x, &gamma, &beta});
  check(options.eps >= 0, "{}: eps is {}; expected 0 or more", norm.op, options.eps);

  const Tensor rows = rows_of(x), y = empty(x.shape(), result, x.device());
  const Tensor scale = gamma ? detail::dense(gamma) : Tensor(), shift = beta ? detail::dense(beta) : Tensor();
  const Tensor mean = norm.centred ? empty_on(x, Shape{rows.size(0)}) : Tensor(),
               rstd = empty_on(x, Shape{rows.size(0)});
  if (x.count() > 0) {
    const Tensor y_rows = rows_of(y);
    run(&Table::normalise_forward,
        {.x = rows.view(),
         .y = y_rows.view(),
         .gamma = floats(scale),
         .beta = floats(shift),
         .mean = floats(mean),
         .rstd = floats(rstd),
         .eps = options.eps},
        x);
  }

  const SavedNorm saved{x.detach(), scale, mean, rstd, static_cast<bool>(beta)};
  return record_adding(norm.op, y, {x, gamma, beta}, [saved](const Tensor& dy, const Tensor& gathered) {
    return norm_backward(saved, dy, gathered);
  });
}

}  // namespace

Tensor layer_norm(const Tensor& x, const Tensor& gamma, const Tensor& beta, const NormOptions& options) {
  return normalise({"layer_norm", true}, x, gamma, beta, options);
}

Tensor rms_norm(const Tensor& x, const Tensor& gamma, const NormOptions& options) {
  return normalise({"rms_norm", false}, x, gamma, Tensor(), options);
}

}  // namespace mh
