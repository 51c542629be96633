// Cases of the activations, plain and gated.
#include <cmath>

#include "multihead/check/op_case.h"
#include "multihead/ops/rows/activation.h"

namespace mh {

namespace {

struct Named {
  const char* name;
  Activation kind;
};
constexpr Named kKinds[] = {{"relu", Activation::relu},
                            {"gelu", Activation::gelu},
                            {"gelu_tanh", Activation::gelu_tanh},
                            {"silu", Activation::silu},
                            {"sigmoid", Activation::sigmoid},
                            {"tanh", Activation::tanh},
                            {"quick_gelu", Activation::quick_gelu}};

double activated(Activation kind, double x) {
  switch (kind) {
    case Activation::none: return x;
    case Activation::relu: return x > 0 ? x : 0;
    case Activation::gelu: return 0.5 * x * std::erfc(-x * M_SQRT1_2);
    case Activation::gelu_tanh: return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
    case Activation::silu: return x / (1 + std::exp(-x));
    case Activation::sigmoid: return 1 / (1 + std::exp(-x));
    case Activation::tanh: return std::tanh(x);
    case Activation::quick_gelu: return x / (1 + std::exp(-1.702 * x));
  }
  return NAN;
}

OpCase plain_case(const Named& of, const Shape& shape, double centre, double spread) {
  return {.label = fmt::format("{} {} around {}", of.name, shape, centre),
          .inputs = {{shape, centre, spread}},
          .op = [kind = of.kind](auto& x) { return activation(x[0], kind); },
          .reference =
              [kind = of.kind](auto& x) {
                Numbers y;
                for (const double each : x[0]) y.push_back(activated(kind, each));
                return y;
              }};
}

OpCase gated_case(const Named& of, int64_t half) {
  return {.label = fmt::format("gated {} of 2 x {}", of.name, half),
          .inputs = {{Shape{3, 2 * half}, 1}},
          .op = [kind = of.kind](auto& x) { return gated(x[0], kind); },
          .reference =
              [kind = of.kind, half](auto& x) {
                Numbers y;
                const auto n = static_cast<size_t>(half);
                for (size_t row = 0; row < 3; ++row) {
                  for (size_t c = 0; c < n; ++c)
                    y.push_back(activated(kind, x[0][row * 2 * n + c]) * x[0][row * 2 * n + n + c]);
                }
                return y;
              }};
}

}  // namespace

std::vector<OpCase> activation_cases() {
  std::vector<OpCase> cases;
  for (const Named& each : kKinds) {
    // The kink of relu is no place for differences.
    const bool kinked = each.kind == Activation::relu;
    for (const int64_t count : {3, 16, 100})
      cases.push_back(plain_case(each, Shape{count}, kinked ? 2 : 0, kinked ? 0.3 : 2));
    cases.push_back(plain_case(each, Shape{2, 5, 7}, -3, 0.5));
    if (each.kind == Activation::silu || each.kind == Activation::gelu || each.kind == Activation::quick_gelu) {
      for (const int64_t half : {1, 16, 21}) cases.push_back(gated_case(each, half));
    }
  }
  cases.push_back(plain_case(kKinds[1], Shape{0}, 0, 1));
  cases.push_back(gated_case(kKinds[3], 0));
  return cases;
}

}  // namespace mh
