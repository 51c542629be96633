// Cases of layer norm and RMS norm.
#include <cmath>

#include "multihead/check/op_case.h"
#include "multihead/ops/rows/layer_norm.h"

namespace mh {

namespace {

// x, then gamma and beta where there are that many.
Numbers norm(const std::vector<Numbers>& in, int64_t width, double eps, bool centred) {
  const Numbers& x = in[0];
  const auto n = static_cast<size_t>(width);
  Numbers y(x.size());
  for (size_t row = 0; n > 0 && row < x.size() / n; ++row) {
    double mean = 0, square = 0;
    for (size_t c = 0; centred && c < n; ++c) mean += x[row * n + c] / static_cast<double>(n);
    for (size_t c = 0; c < n; ++c) square += std::pow(x[row * n + c] - mean, 2) / static_cast<double>(n);
    for (size_t c = 0; c < n; ++c) {
      y[row * n + c] = (x[row * n + c] - mean) / std::sqrt(square + eps);
      if (in.size() > 1) y[row * n + c] *= in[1][c];
      if (in.size() > 2) y[row * n + c] += in[2][c];
    }
  }
  return y;
}

OpCase layer_case(const Shape& shape, double centre) {
  const int64_t width = shape[shape.rank() - 1];
  const Shape each{width};
  return {.label = fmt::format("layer_norm {} around {}", shape, centre),
          .inputs = {{shape, centre}, {each, 1, 0.5, true}, {each, 0, 1, true}},
          .op = [](auto& x) { return layer_norm(x[0], x[1], x[2]); },
          .reference = [width](auto& x) { return norm(x, width, static_cast<double>(1e-5f), true); },
          .terms = std::max(width, shape.count() / std::max<int64_t>(1, width))};
}

OpCase rms_case(const Shape& shape) {
  const int64_t width = shape[shape.rank() - 1];
  return {.label = fmt::format("rms_norm {}", shape),
          .inputs = {{shape}, {Shape{width}, 1, 0.5, true}},
          .op = [](auto& x) { return rms_norm(x[0], x[1], {.eps = 0.01f}); },
          .reference = [width](auto& x) { return norm(x, width, static_cast<double>(0.01f), false); },
          .terms = std::max(width, shape.count() / std::max<int64_t>(1, width))};
}

}  // namespace

std::vector<OpCase> norm_cases() {
  std::vector<OpCase> cases;
  for (const int64_t width : {1, 4, 7, 8, 15, 16, 17, 33, 64, 131}) cases.push_back(layer_case(Shape{3, width}, 0));
  cases.push_back(layer_case(Shape{40}, 0));
  cases.push_back(layer_case(Shape{2, 3, 24}, 5));
  cases.push_back(layer_case(Shape{2, 0, 24}, 0));
  cases.push_back(layer_case(Shape{5, 0}, 0));
  // More rows than one block of their sums, and more than all blocks at their smallest.
  cases.push_back(layer_case(Shape{70, 18}, 0));
  cases.push_back(layer_case(Shape{2100, 4}, 1));
  for (const int64_t width : {5, 7, 16, 35}) cases.push_back(rms_case(Shape{4, width}));
  cases.push_back(rms_case(Shape{70, 18}));
  cases.push_back({.label = "layer_norm without gamma and beta",
                   .inputs = {{Shape{3, 20}}},
                   .op = [](auto& x) { return layer_norm(x[0], {}, {}); },
                   .reference = [](auto& x) { return norm(x, 20, static_cast<double>(1e-5f), true); },
                   .terms = 20});
  cases.push_back({.label = "layer_norm f32 to bf16",
                   .inputs = {{Shape{3, 36}}, {Shape{36}, 1, 0.5, true}, {Shape{36}, 0, 1, true}},
                   .op = [](auto& x) { return layer_norm(x[0], x[1], x[2], {.result = DType::bf16}); },
                   .reference = [](auto& x) { return norm(x, 36, static_cast<double>(1e-5f), true); },
                   .types = {DType::f32},
                   .terms = 36});
  return cases;
}

}  // namespace mh
