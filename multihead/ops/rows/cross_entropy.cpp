// cross_entropy: checks, the sum over rows in f64, the gradient from what was saved.
#include "multihead/ops/rows/cross_entropy.h"

#include "multihead/autograd/tape.h"
#include "multihead/kernels/rows.h"
#include "multihead/ops/rows/cross_entropy_rows.h"
#include "multihead/ops/rows/rows.h"
#include "multihead/ops/run.h"

namespace mh {

namespace detail {

int64_t counted_rows(std::string_view op, const Tensor& targets, int64_t classes, const CrossEntropyOptions& options) {
  check(options.smoothing >= 0 && options.smoothing <= 1, "{}: smoothing is {}; expected 0 to 1", op,
        options.smoothing);
  if (targets.dtype() != DType::i32)
    fail(ErrorKind::unsupported, "{}: targets has elements of type {}; expected i32", op, name(targets.dtype()));
  const Tensor flat = dense(targets).to(Device{});
  const int32_t* at = flat.view().as<int32_t>();
  int64_t counted = 0;
  for (int64_t n = 0; n < flat.count(); ++n) {
    if (at[n] == options.ignore) continue;
    check(at[n] >= 0 && at[n] < classes, "{}: target {} of row {} is not a class; expected 0 to {}, or {} for none", op,
          at[n], n, classes - 1, options.ignore);
    ++counted;
  }
  return counted;
}

Tensor total(const Tensor& rows, double factor) {
  const Tensor y = empty_on(rows, Shape{});
  run(&Table::total, {.x = rows.view().as<float>(), .count = rows.count(), .factor = factor, .y = y.view().as<float>()},
      rows);
  return y;
}

}  // namespace detail

namespace {

using detail::rows_of;

double factor_of(const CrossEntropyOptions& options, int64_t counted) {
  return options.reduction == Reduction::mean && counted > 0 ? 1.0 / static_cast<double>(counted) : 1.0;
}

}  // namespace

CrossEntropy cross_entropy(const Tensor& logits, const Tensor& targets, const CrossEntropyOptions& options) {
  detail::check_rows("cross_entropy", "logits", logits);
  detail::check_float("cross_entropy", "logits", logits);
  check(targets.rank() == logits.rank() - 1 && targets.count() == rows_of(logits).size(0),
        "cross_entropy: targets does not fit logits; expected one for each row; logits is {}, targets is {}",
        logits.shape(), targets.shape());
  const int64_t counted = detail::counted_rows("cross_entropy", targets, logits.size(-1), options);

  const Tensor rows = rows_of(logits), wanted = detail::dense(targets).to(logits.device());
  const Shape each{rows.size(0)};
  const Tensor lse = empty_on(logits, each), loss = empty_on(logits, each), nll = empty_on(logits, each);
  if (counted == 0) {
    return {.loss = record("cross_entropy", zeros_on(logits, Shape{}), {logits},
                           [logits = logits.detach()](const Tensor&) {
                             return Grads{zeros(logits.shape(), logits.dtype(), logits.device())};
                           }),
            .nll = zeros_on(logits, Shape{}),
            .counted = 0};
  }
  run(&Table::cross_entropy_forward,
      {.x = rows.view(),
       .targets = wanted.view().as<int32_t>(),
       .ignore = options.ignore,
       .smoothing = options.smoothing,
       .lse = lse.view().as<float>(),
       .loss = loss.view().as<float>(),
       .nll = nll.view().as<float>()},
      logits);

  const double factor = factor_of(options, counted);
  const Tensor y = record("cross_entropy", detail::total(loss, factor), {logits},
                          [logits = logits.detach(), wanted, lse, options, factor](const Tensor& dy) {
                            const Tensor dx = empty_like(logits);
                            const Tensor from = rows_of(logits), to = rows_of(dx);
                            run(&Table::cross_entropy_backward,
                                {.x = from.view(),
                                 .dx = to.view(),
                                 .targets = wanted.view().as<int32_t>(),
                                 .ignore = options.ignore,
                                 .smoothing = options.smoothing,
                                 .lse = lse.view().as<float>(),
                                 .scale = static_cast<float>(dy.to(Device{}).item({}) * factor)},
                                logits);
                            return Grads{dx};
                          });
  return {.loss = y, .nll = detail::total(nll, 1), .counted = counted};
}

}  // namespace mh
