// layer_norm and rms_norm: checks, statistics kept for the way back.
#include "multihead/ops/layer_norm.h"

#include "multihead/autograd/tape.h"
#include "multihead/kernels/cpu/dispatch.h"
#include "multihead/ops/rows.h"

namespace mh {

namespace {

using detail::rows_of;

float* floats(const Tensor& x) { return x ? x.data<float>() : nullptr; }

struct Norm {
  std::string_view op;
  bool centred;
};

// What the way back needs. `mean` is empty for RMS norm.
struct Saved {
  Tensor x, gamma, mean, rstd;
  bool wants_dbeta;
};

// Whether a sum of gradients may be added to where it lies: nobody else holds it.
bool can_grow(const Tensor& sum, const Tensor& x) {
  return sum.owns_alone() && sum.is_contiguous() && !overlaps_itself(sum) && sum.dtype() == x.dtype();
}

// `gathered`: what other ops have given to x, or empty.
Grads norm_backward(const Saved& saved, const Tensor& dy, const Tensor& gathered) {
  const Tensor x = rows_of(saved.x), d = rows_of(dy);
  const bool grows = gathered && can_grow(gathered, x);
  const Tensor dx = grows ? gathered : empty(saved.x.shape(), saved.x.dtype());
  if (gathered && !grows) dx.copy_from(gathered);
  const Shape width{x.size(1)};
  const Tensor dgamma = saved.gamma ? zeros(width) : Tensor(), dbeta = saved.wants_dbeta ? zeros(width) : Tensor();
  if (x.count() > 0) {
    const Tensor dx_rows = rows_of(dx);
    kernels::cpu().normalise_backward({.x = x.view(),
                                       .dy = d.view(),
                                       .dx = dx_rows.view(),
                                       .add = static_cast<bool>(gathered),
                                       .gamma = floats(saved.gamma),
                                       .mean = floats(saved.mean),
                                       .rstd = floats(saved.rstd),
                                       .dgamma = floats(dgamma),
                                       .dbeta = floats(dbeta)});
  }
  return {dx, dgamma, dbeta};
}

NormBeside normalise(const Norm& norm, const Tensor& x, const Tensor& gamma, const Tensor& beta,
                     const NormOptions& options, bool beside) {
  detail::check_rows(norm.op, "x", x);
  detail::check_float(norm.op, "x", x);
  const DType result = options.result.value_or(x.dtype());
  detail::check_types(norm.op, x.dtype(), result);
  detail::check_parameter(norm.op, "gamma", gamma, x);
  detail::check_parameter(norm.op, "beta", beta, x);
  check(options.eps >= 0, "{}: eps is {}; expected 0 or more", norm.op, options.eps);

  const Tensor rows = rows_of(x), y = empty(x.shape(), result);
  const Tensor scale = gamma ? detail::dense(gamma) : Tensor(), shift = beta ? detail::dense(beta) : Tensor();
  const Tensor mean = norm.centred ? empty(Shape{rows.size(0)}) : Tensor(), rstd = empty(Shape{rows.size(0)});
  if (x.count() > 0) {
    const Tensor y_rows = rows_of(y);
    kernels::cpu().normalise_forward({.x = rows.view(),
                                      .y = y_rows.view(),
                                      .gamma = floats(scale),
                                      .beta = floats(shift),
                                      .mean = floats(mean),
                                      .rstd = floats(rstd),
                                      .eps = options.eps});
  }

  const Saved saved{x.detach(), scale, mean, rstd, static_cast<bool>(beta)};
  const std::vector<Tensor> inputs{x, gamma, beta};
  if (!beside)
    return {x, record(norm.op, y, inputs, [saved](const Tensor& dy) { return norm_backward(saved, dy, {}); })};
  const auto both = record(norm.op, {x.detach(), y}, inputs, [saved](const std::vector<Tensor>& dys) {
    return dys[1] ? norm_backward(saved, dys[1], dys[0]) : Grads{dys[0], {}, {}};
  });
  return {both[0], both[1]};
}

}  // namespace

Tensor layer_norm(const Tensor& x, const Tensor& gamma, const Tensor& beta, const NormOptions& options) {
  return normalise({"layer_norm", true}, x, gamma, beta, options, false).y;
}

Tensor rms_norm(const Tensor& x, const Tensor& gamma, const NormOptions& options) {
  return normalise({"rms_norm", false}, x, gamma, Tensor(), options, false).y;
}

NormBeside layer_norm_beside(const Tensor& x, const Tensor& gamma, const Tensor& beta, const NormOptions& options) {
  return normalise({"layer_norm_beside", true}, x, gamma, beta, options, true);
}

NormBeside rms_norm_beside(const Tensor& x, const Tensor& gamma, const NormOptions& options) {
  return normalise({"rms_norm_beside", false}, x, gamma, Tensor(), options, true);
}

}  // namespace mh
