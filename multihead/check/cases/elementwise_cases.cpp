// Cases of elementwise arithmetic with broadcasting, and of reductions.
#include <algorithm>
#include <cmath>

#include "multihead/check/op_case.h"
#include "multihead/ops/elementwise.h"
#include "multihead/ops/rows/reduce.h"

namespace mh {

namespace {

// The place in x, repeated to `shape`, of element n of it.
size_t place(const Shape& x, const Shape& shape, int64_t n) {
  int64_t at = 0, step = 1;
  for (int axis = shape.rank() - 1, own = x.rank() - 1; own >= 0; --axis, --own) {
    at += n % shape[axis] % x[own] * step;
    n /= shape[axis];
    step *= x[own];
  }
  return static_cast<size_t>(at);
}

struct Pair {
  Shape a, b, y;
};

using Two = double (*)(double, double);

OpCase binary_case(const char* label, Tensor (*op)(const Tensor&, const Tensor&), Two f, const Pair& of) {
  const int64_t repeats = of.y.count() / std::max<int64_t>(1, std::min(of.a.count(), of.b.count()));
  return {.label = fmt::format("{} {} {}", label, of.a, of.b),
          .inputs = {{of.a}, {of.b, 3, 0.4}},
          .op = [op](auto& x) { return op(x[0], x[1]); },
          .reference =
              [f, of](auto& x) {
                Numbers y;
                for (int64_t n = 0; n < of.y.count(); ++n)
                  y.push_back(f(x[0][place(of.a, of.y, n)], x[1][place(of.b, of.y, n)]));
                return y;
              },
          .terms = repeats};
}

OpCase unary_case(const char* label, Tensor (*op)(const Tensor&), double (*f)(double)) {
  return {.label = label,
          .inputs = {{Shape{3, 19}, 2, 0.3}},
          .op = [op](auto& x) { return op(x[0]); },
          .reference =
              [f](auto& x) {
                Numbers y;
                for (const double each : x[0]) y.push_back(f(each));
                return y;
              }};
}

enum class Kind { sum, mean, max };

// Over the middle of (outer, middle, inner).
Numbers reduced(const Numbers& x, const std::vector<int64_t>& sizes, Kind kind) {
  Numbers y(static_cast<size_t>(sizes[0] * sizes[2]), kind == Kind::max ? -INFINITY : 0);
  for (size_t n = 0; n < x.size(); ++n) {
    const auto inner = static_cast<size_t>(sizes[2]), middle = static_cast<size_t>(sizes[1]);
    double& to = y[n / inner / middle * inner + n % inner];
    to =
        kind == Kind::max ? std::max(to, x[n]) : to + x[n] / (kind == Kind::mean ? static_cast<double>(sizes[1]) : 1.0);
  }
  return y;
}

OpCase reduce_case(Kind kind, const std::vector<int64_t>& sizes) {
  const auto op = kind == Kind::sum ? sum : kind == Kind::mean ? mean : max;
  return {.label = fmt::format("{} over the middle of [{}]",
                               kind == Kind::sum    ? "sum"
                               : kind == Kind::mean ? "mean"
                                                    : "max",
                               fmt::join(sizes, ", ")),
          .inputs = {{Shape(sizes), 0, 3}},
          .op = [op](auto& x) { return op(x[0], {.axes = {1}}); },
          .reference = [=](auto& x) { return reduced(x[0], sizes, kind); },
          .terms = sizes[1]};
}

}  // namespace

std::vector<OpCase> elementwise_cases() {
  std::vector<OpCase> cases;
  const Pair pairs[] = {{Shape{37}, Shape{37}, Shape{37}},
                        {Shape{4, 17}, Shape{17}, Shape{4, 17}},
                        {Shape{3, 1, 5}, Shape{4, 1}, Shape{3, 4, 5}},
                        {Shape{2, 16}, Shape{}, Shape{2, 16}},
                        {Shape{1, 33}, Shape{3, 1}, Shape{3, 33}},
                        {Shape{0, 3}, Shape{3}, Shape{0, 3}}};
  for (const Pair& each : pairs) {
    cases.push_back(binary_case(
        "add", add, [](double a, double b) { return a + b; }, each));
    cases.push_back(binary_case(
        "sub", sub, [](double a, double b) { return a - b; }, each));
    cases.push_back(binary_case(
        "mul", mul, [](double a, double b) { return a * b; }, each));
    cases.push_back(binary_case(
        "div", div, [](double a, double b) { return a / b; }, each));
    cases.push_back(binary_case(
        "maximum", maximum, [](double a, double b) { return std::max(a, b); }, each));
  }
  cases.push_back(unary_case("exp", exp, [](double x) { return std::exp(x); }));
  cases.push_back(unary_case("log", log, [](double x) { return std::log(x); }));
  cases.push_back(unary_case("sqrt", sqrt, [](double x) { return std::sqrt(x); }));
  cases.push_back(unary_case("square", square, [](double x) { return x * x; }));
  cases.push_back(unary_case(
      "scale", [](const Tensor& x) { return scale(x, -1.5f); }, [](double x) { return -1.5 * x; }));
  for (const DType type : {DType::bf16, DType::f32}) {
    cases.push_back({.label = fmt::format("cast to {}", name(type)),
                     .inputs = {{Shape{3, 19}}},
                     .op = [type](auto& x) { return cast(x[0], type); },
                     .reference = [](auto& x) { return x[0]; },
                     .types = {DType::f32, DType::bf16}});
  }
  for (const Kind kind : {Kind::sum, Kind::mean, Kind::max}) {
    for (const auto& sizes :
         {std::vector<int64_t>{2, 3, 5}, {3, 40, 1}, {1, 100, 17}, {2, 7, 70}, {5, 1, 1}, {0, 4, 3}})
      cases.push_back(reduce_case(kind, sizes));
    // More than one block of the middle axis.
    cases.push_back(reduce_case(kind, {1, 40000, 1}));
    cases.push_back(reduce_case(kind, {1, 4200, 3}));
  }
  return cases;
}

}  // namespace mh
