// cross_entropy: checks, the sum over rows in f64, the gradient from what was saved.
#include "multihead/ops/cross_entropy.h"

#include "multihead/autograd/tape.h"
#include "multihead/kernels/cpu/dispatch.h"
#include "multihead/ops/cross_entropy_rows.h"
#include "multihead/ops/rows.h"

namespace mh {

namespace detail {

int64_t counted_rows(std::string_view op, const Tensor& targets, int64_t classes, const CrossEntropyOptions& options) {
  check(options.smoothing >= 0 && options.smoothing <= 1, "{}: smoothing is {}; expected 0 to 1", op,
        options.smoothing);
  if (targets.dtype() != DType::i32)
    fail(ErrorKind::unsupported, "{}: targets has elements of type {}; expected i32", op, name(targets.dtype()));
  const Tensor flat = dense(targets);
  const int32_t* at = flat.data<int32_t>();
  int64_t counted = 0;
  for (int64_t n = 0; n < flat.count(); ++n) {
    if (at[n] == options.ignore) continue;
    check(at[n] >= 0 && at[n] < classes, "{}: target {} of row {} is no class; expected 0 to {}, or {} for none", op,
          at[n], n, classes - 1, options.ignore);
    ++counted;
  }
  return counted;
}

Tensor total(const Tensor& rows, double factor) {
  double sum = 0;
  for (int64_t n = 0; n < rows.count(); ++n) sum += static_cast<double>(rows.data<float>()[n]);
  return full(Shape{}, sum * factor);
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

  const Tensor rows = rows_of(logits), wanted = detail::dense(targets);
  const Shape each{rows.size(0)};
  const Tensor lse = empty(each), loss = empty(each), nll = empty(each);
  if (counted == 0) {
    return {.loss = record(
                "cross_entropy", zeros(Shape{}), {logits},
                [logits = logits.detach()](const Tensor&) { return Grads{zeros(logits.shape(), logits.dtype())}; }),
            .nll = zeros(Shape{}),
            .counted = 0};
  }
  kernels::cpu().cross_entropy_forward({.x = rows.view(),
                                        .targets = wanted.data<int32_t>(),
                                        .ignore = options.ignore,
                                        .smoothing = options.smoothing,
                                        .lse = lse.data<float>(),
                                        .loss = loss.data<float>(),
                                        .nll = nll.data<float>()});

  const double factor = factor_of(options, counted);
  const Tensor y = record("cross_entropy", detail::total(loss, factor), {logits},
                          [logits = logits.detach(), wanted, lse, options, factor](const Tensor& dy) {
                            const Tensor dx = empty(logits.shape(), logits.dtype());
                            const Tensor from = rows_of(logits), to = rows_of(dx);
                            kernels::cpu().cross_entropy_backward({.x = from.view(),
                                                                   .dx = to.view(),
                                                                   .targets = wanted.data<int32_t>(),
                                                                   .ignore = options.ignore,
                                                                   .smoothing = options.smoothing,
                                                                   .lse = lse.data<float>(),
                                                                   .scale = static_cast<float>(dy.item({}) * factor)});
                            return Grads{dx};
                          });
  return {.loss = y, .nll = detail::total(nll, 1), .counted = counted};
}

}  // namespace mh
