// Cases of softmax, log-softmax, log-sum-exp and the cross-entropy.
#include <algorithm>
#include <cmath>

#include "multihead/check/op_case.h"
#include "multihead/ops/rows/cross_entropy.h"
#include "multihead/ops/rows/softmax.h"

namespace mh {

namespace {

double lse_of(const double* x, size_t n) {
  const double most = *std::max_element(x, x + n);
  double sum = 0;
  for (size_t c = 0; c < n; ++c) sum += std::exp(x[c] - most);
  return most + std::log(sum);
}

// f(x, lse) of every element, row by row.
template <class F>
Numbers by_rows(const Numbers& x, size_t n, const F& f) {
  Numbers y;
  for (size_t row = 0; n > 0 && row < x.size() / n; ++row) {
    const double lse = lse_of(x.data() + row * n, n);
    for (size_t c = 0; c < n; ++c) y.push_back(f(x[row * n + c], lse));
  }
  return y;
}

Numbers cross_entropy_of(const Numbers& x, const std::vector<int32_t>& targets, size_t classes,
                         const CrossEntropyOptions& options) {
  double loss = 0, counted = 0;
  const double s = static_cast<double>(options.smoothing);
  for (size_t row = 0; row < targets.size(); ++row) {
    if (targets[row] == options.ignore) continue;
    const double* at = x.data() + row * classes;
    const double lse = lse_of(at, classes);
    double spread = 0;
    for (size_t c = 0; c < classes; ++c) spread += (lse - at[c]) / static_cast<double>(classes);
    loss += (1 - s) * (lse - at[targets[row]]) + s * spread;
    ++counted;
  }
  return {options.reduction == Reduction::mean && counted > 0 ? loss / counted : loss};
}

OpCase softmax_case(const Shape& shape, double spread) {
  const int64_t width = shape[shape.rank() - 1];
  return {.label = fmt::format("softmax {} spread {}", shape, spread),
          .inputs = {{shape, 0, spread}},
          .op = [](auto& x) { return softmax(x[0]); },
          .reference =
              [width](auto& x) {
                return by_rows(x[0], static_cast<size_t>(width),
                               [](double a, double lse) { return std::exp(a - lse); });
              },
          .terms = width};
}

OpCase log_softmax_case(const Shape& shape, double spread) {
  const int64_t width = shape[shape.rank() - 1];
  return {.label = fmt::format("log_softmax {} spread {}", shape, spread),
          .inputs = {{shape, 0, spread}},
          .op = [](auto& x) { return log_softmax(x[0]); },
          .reference =
              [width](auto& x) {
                return by_rows(x[0], static_cast<size_t>(width), [](double a, double lse) { return a - lse; });
              },
          .terms = width};
}

OpCase lse_case(const Shape& shape) {
  const auto width = static_cast<size_t>(shape[shape.rank() - 1]);
  return {.label = fmt::format("log_sum_exp {}", shape),
          .inputs = {{shape, 2}},
          .op = [](auto& x) { return log_sum_exp(x[0]); },
          .reference =
              [width](auto& x) {
                Numbers y;
                for (size_t row = 0; row < x[0].size() / width; ++row)
                  y.push_back(lse_of(x[0].data() + row * width, width));
                return y;
              },
          .terms = static_cast<int64_t>(width)};
}

OpCase cross_entropy_case(int64_t rows, int64_t classes, const CrossEntropyOptions& options) {
  std::vector<int32_t> targets;
  for (int64_t row = 0; row < rows; ++row)
    targets.push_back(row % 4 == 2 ? options.ignore : static_cast<int32_t>(row * 7 % classes));
  const Tensor wanted = tensor<int32_t>(targets, Shape{rows});
  return {.label = fmt::format("cross_entropy [{}, {}] smoothing {} {}", rows, classes, options.smoothing,
                               options.reduction == Reduction::mean ? "mean" : "sum"),
          .inputs = {{Shape{rows, classes}, 0, 2}},
          .op = [=](auto& x) { return cross_entropy(x[0], wanted, options).loss; },
          .reference = [=](auto& x) { return cross_entropy_of(x[0], targets, static_cast<size_t>(classes), options); },
          .terms = classes};
}

// Logits are x · wᵀ, (rows, width) and (classes, width).
OpCase linear_case(int64_t rows, int64_t classes, int64_t width, const CrossEntropyOptions& options) {
  std::vector<int32_t> targets;
  for (int64_t row = 0; row < rows; ++row)
    targets.push_back(row % 4 == 2 ? options.ignore : static_cast<int32_t>(row * 7 % classes));
  const Tensor wanted = tensor<int32_t>(targets, Shape{rows});
  const auto logits = [=](const Numbers& x, const Numbers& w) {
    Numbers z;
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t c = 0; c < classes; ++c) {
        double sum = 0;
        for (int64_t n = 0; n < width; ++n)
          sum += x[static_cast<size_t>(row * width + n)] * w[static_cast<size_t>(c * width + n)];
        z.push_back(sum);
      }
    }
    return z;
  };
  return {
      .label = fmt::format("linear_cross_entropy [{}, {}] of {} smoothing {}", rows, width, classes, options.smoothing),
      .inputs = {{Shape{rows, width}}, {Shape{classes, width}, 0, 0.3, true}},
      .op = [=](auto& x) { return linear_cross_entropy(x[0], x[1], wanted, options).loss; },
      .reference =
          [=](auto& x) { return cross_entropy_of(logits(x[0], x[1]), targets, static_cast<size_t>(classes), options); },
      .types = {DType::f32, DType::bf16},
      .terms = std::max({rows, classes, width})};
}

}  // namespace

std::vector<OpCase> softmax_cases() {
  std::vector<OpCase> cases;
  for (const int64_t width : {1, 5, 8, 15, 16, 17, 31, 64, 130}) {
    cases.push_back(softmax_case(Shape{3, width}, 1));
    cases.push_back(log_softmax_case(Shape{3, width}, 1));
    cases.push_back(lse_case(Shape{2, 2, width}));
  }
  cases.push_back(softmax_case(Shape{2, 3, 20}, 20));
  cases.push_back(log_softmax_case(Shape{2, 3, 20}, 20));
  cases.push_back(softmax_case(Shape{50}, 1));
  cases.push_back(softmax_case(Shape{0, 9}, 1));
  cases.push_back(softmax_case(Shape{4, 0}, 1));
  for (const int64_t classes : {1, 9, 16, 33, 200}) cases.push_back(cross_entropy_case(5, classes, {}));
  cases.push_back(cross_entropy_case(7, 30, {.smoothing = 0.1f}));
  cases.push_back(cross_entropy_case(7, 30, {.smoothing = 0.1f, .reduction = Reduction::sum}));
  cases.push_back(cross_entropy_case(1, 30, {.smoothing = 1.0f, .ignore = 7}));
  cases.push_back(cross_entropy_case(0, 30, {}));
  cases.push_back(linear_case(5, 9, 7, {}));
  cases.push_back(linear_case(9, 33, 20, {.smoothing = 0.1f, .reduction = Reduction::sum}));
  cases.push_back(linear_case(800, 6, 3, {.smoothing = 0.2f}));  // more than one chunk
  cases.push_back(linear_case(0, 5, 3, {}));
  return cases;
}

}  // namespace mh
