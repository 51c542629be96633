// The linear layer: values and gradients in double, fused tails, bf16 with master weights, refusals.
#include "multihead/ops/products/linear.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "multihead/autograd/tape.h"
#include "multihead/check/verdict.h"

namespace mh {
namespace {

struct Problem {
  Tensor x, w, bias, residual;
};

double activated(double z, Activation kind) {
  if (kind == Activation::relu) return z > 0 ? z : 0;
  if (kind == Activation::gelu) return z * 0.5 * std::erfc(-z / std::sqrt(2.0));
  return z;
}

// Σ c · y in double, with entry `at` of `moved` (0: x, 1: w, 2: bias, 3: residual) moved by `by`.
double loss(const Problem& p, Activation kind, const Tensor& c, int moved, int64_t at, double by) {
  const int64_t rows = p.x.size(0), in = p.x.size(1), out = p.w.size(0);
  const auto value = [&](const Tensor& t, int which, int64_t i) {
    return static_cast<double>(t.data<float>()[i]) + (moved == which && at == i ? by : 0);
  };
  double sum = 0;
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t n = 0; n < out; ++n) {
      double z = p.bias ? value(p.bias, 2, n) : 0;
      for (int64_t k = 0; k < in; ++k) z += value(p.x, 0, r * in + k) * value(p.w, 1, n * in + k);
      double y = activated(z, kind);
      if (p.residual) y += value(p.residual, 3, r * out + n);
      sum += y * static_cast<double>(c.data<float>()[r * out + n]);
    }
  }
  return sum;
}

void expect_gradients(const Problem& p, Activation kind) {
  const Tensor c = randn({p.x.size(0), p.w.size(0)}, 9);
  Problem traced = p;
  for (Tensor* t : {&traced.x, &traced.w, &traced.bias, &traced.residual}) {
    if (*t) *t = parameter(*t);
  }
  Tape tape;
  const Tensor y = linear(traced.x, traced.w, {.bias = traced.bias, .residual = traced.residual, .activation = kind});
  Gradients gradients;
  tape.backward({y}, {c}, gradients);
  int which = 0;
  for (const Tensor* t : {&traced.x, &traced.w, &traced.bias, &traced.residual}) {
    for (int64_t i = 0; *t && i < t->count(); i += 3) {
      const double slope = (loss(p, kind, c, which, i, 1e-5) - loss(p, kind, c, which, i, -1e-5)) / 2e-5;
      EXPECT_NEAR(gradients.of(*t).contiguous().data<float>()[i], slope, 2e-5 * (1 + std::abs(slope)))
          << which << " " << i;
    }
    ++which;
  }
}

TEST(Linear, GradientsAreThoseOfTheFormula) {
  const Problem plain{randn({5, 17}, 1), randn({9, 17}, 2), {}, {}};
  Problem biased = plain, added = plain;
  biased.bias = randn({9}, 3);
  added.bias = biased.bias;
  added.residual = randn({5, 9}, 4);
  for (const Activation kind : {Activation::none, Activation::relu, Activation::gelu}) {
    expect_gradients(plain, kind);
    expect_gradients(biased, kind);
  }
  expect_gradients(added, Activation::none);
}

TEST(Linear, LeadingAxesAreRows) {
  const Tensor x = randn({2, 3, 8}, 1), w = randn({4, 8}, 2);
  const Tensor y = linear(x, w);
  EXPECT_EQ(to_string(y.shape()), "[2, 3, 4]");
  const Tensor rows = linear(x.reshape({6, 8}), w);
  for (int64_t i = 0; i < y.count(); ++i) EXPECT_EQ(y.data<float>()[i], rows.data<float>()[i]);
}

TEST(Linear, Bf16RowsReadARoundedCopyAndGiveF32Gradients) {
  const Tensor x = parameter(randn({6, 32}, 1).to(DType::bf16)), w = parameter(randn({8, 32}, 2));
  const Tensor copy = w.detach().to(DType::bf16);
  for (const Tensor& given : {Tensor(), copy}) {
    Tape tape;
    const Tensor y = linear(x, w, {.result = DType::f32, .copy = given});
    EXPECT_EQ(y.dtype(), DType::f32);
    Gradients gradients;
    tape.backward({y}, {full({6, 8}, 1)}, gradients);
    EXPECT_EQ(gradients.of(w).dtype(), DType::f32);
    EXPECT_EQ(gradients.of(x).dtype(), DType::bf16);
    double expected = 0, sum = 0;
    for (int64_t k = 0; k < 32; ++k) expected += x.item({2, k}) * copy.item({3, k});
    EXPECT_NEAR(y.item({2, 3}), expected, 1e-5);
    for (int64_t r = 0; r < 6; ++r) sum += x.item({r, 5});
    EXPECT_NEAR(gradients.of(w).item({1, 5}), sum, 1e-4);
  }
}

// The bits of y and of all gradients, one behind the other.
std::vector<float> all_bits(const Tensor& x, const Tensor& w, const Tensor& bias,
                            const std::function<Tensor(const Tensor&, const Tensor&, const Tensor&)>& f) {
  const Tensor px = parameter(x), pw = parameter(w), pb = parameter(bias);
  Tape tape;
  const Tensor y = f(px, pw, pb);
  Gradients gradients;
  tape.backward({y}, {randn(y.shape(), 9, y.dtype())}, gradients);
  std::vector<float> out;
  for (const Tensor& t : {y, gradients.of(px), gradients.of(pw), gradients.of(pb)}) {
    const Tensor values = t.detach().to(DType::f32).contiguous();
    out.insert(out.end(), values.data<float>(), values.data<float>() + values.count());
  }
  return out;
}

// Of two linears with relu between them, as one op or as two: y and the gradients of x, both weights, both biases and
// the residual.
std::vector<Tensor> pair_gradients(DType type, const DropoutOptions& drop, bool together) {
  const Tensor x = parameter(randn({21, 40}, 1).to(type)), w1 = parameter(randn({70, 40}, 2));
  const Tensor b1 = parameter(randn({70}, 3)), w2 = parameter(randn({9, 70}, 4)), b2 = parameter(randn({9}, 5));
  const Tensor residual = parameter(randn({21, 9}, 6));
  Tape tape;
  const auto apart = [&] {
    const Tensor middle = linear(x, w1, {.bias = b1, .activation = Activation::relu, .dropout = drop});
    return linear(middle, w2, {.bias = b2, .residual = residual, .result = DType::f32});
  };
  const Tensor y = together ? linear_relu_linear(x, {w1, b1}, {w2, b2}, {drop, residual, DType::f32}) : apart();
  EXPECT_EQ(together, tape.size() == 1);
  Gradients gradients;
  tape.backward({y}, {randn(y.shape(), 9, y.dtype())}, gradients);
  std::vector<Tensor> out{y.detach()};
  for (const Tensor& each : {x, w1, b1, w2, b2, residual}) out.push_back(gradients.of(each));
  return out;
}

TEST(LinearReluLinear, HasTheGradientsOfTwoLinears) {
  for (const DType type : {DType::f32, DType::bf16}) {
    for (const float p : {0.0F, 0.3F, 1.0F}) {
      const auto apart = pair_gradients(type, {.p = p, .seed = 5}, false);
      const auto together = pair_gradients(type, {.p = p, .seed = 5}, true);
      for (size_t n = 0; n < apart.size(); ++n) {
        const Tensor a = apart[n].to(DType::f32).contiguous(), b = together[n].to(DType::f32).contiguous();
        double largest = 0, worst = 0;
        for (int64_t i = 0; i < a.count(); ++i) {
          ASSERT_TRUE(std::isfinite(a.data<float>()[i]) && std::isfinite(b.data<float>()[i]));
          largest = std::max(largest, std::abs(static_cast<double>(a.data<float>()[i])));
          worst = std::max(worst,
                           std::abs(static_cast<double>(a.data<float>()[i]) - static_cast<double>(b.data<float>()[i])));
        }
        EXPECT_LE(worst, (type == DType::f32 ? 1e-6 : 1e-2) * largest) << name(type) << " p " << p << " of " << n;
      }
    }
  }
}

TEST(LinearReluLinear, HasTheBitsOfTwoLinears) {
  for (const DType type : {DType::f32, DType::bf16}) {
    const Tensor x = randn({21, 40}, 1).to(type), w1 = randn({70, 40}, 2), b1 = randn({70}, 3), w2 = randn({9, 70}, 4);
    const DropoutOptions drop{.p = 0.3F, .seed = 5};
    const Tensor middle = linear(x, w1, {.bias = b1, .activation = Activation::relu, .dropout = drop});
    const Tensor expected = linear(middle, w2), copy1 = w1.to(type), copy2 = w2.to(type);
    EXPECT_TRUE(same_bits(linear_relu_linear(x, {w1, b1}, {w2}, {.dropout = drop}), expected));
    EXPECT_TRUE(same_bits(linear_relu_linear(x, {w1, b1, copy1}, {w2, {}, copy2}, {.dropout = drop}), expected));
  }
}

TEST(LinearReluLinear, GivesEachInputItsGradientAlone) {
  const std::vector<Tensor> values{randn({5, 4}, 1), randn({6, 4}, 2), randn({6}, 3),
                                   randn({3, 6}, 4), randn({3}, 5),    randn({5, 3}, 6)};
  for (size_t traced = 0; traced < values.size(); ++traced) {
    std::vector<Tensor> in = values, all;
    for (const Tensor& each : values) all.push_back(parameter(each));
    in[traced] = all[traced];
    const auto gradients = [](const std::vector<Tensor>& of) {
      Tape tape;
      const Tensor y = linear_relu_linear(of[0], {of[1], of[2]}, {of[3], of[4]}, {.residual = of[5]});
      Gradients sums;
      tape.backward({y}, {full(y.shape(), 1)}, sums);
      return sums;
    };
    EXPECT_TRUE(same_bits(gradients(in).of(in[traced]), gradients(all).of(in[traced]))) << traced;
  }
}

TEST(Linear, DropoutHasTheBitsOfDropoutBehindIt) {
  for (const DType type : {DType::f32, DType::bf16}) {
    const Tensor x = randn({9, 40}, 1).to(type), w = randn({37, 40}, 2), bias = randn({37}, 3);
    for (const Activation kind : {Activation::none, Activation::relu, Activation::gelu}) {
      for (const float p : {0.0F, 0.3F, 1.0F}) {
        const DropoutOptions drop{.p = p, .seed = 5};
        const auto fused = all_bits(x, w, bias, [&](const Tensor& a, const Tensor& b, const Tensor& c) {
          return linear(a, b, {.bias = c, .activation = kind, .dropout = drop});
        });
        const auto apart = all_bits(x, w, bias, [&](const Tensor& a, const Tensor& b, const Tensor& c) {
          return dropout(linear(a, b, {.bias = c, .activation = kind}), drop);
        });
        EXPECT_EQ(fused, apart) << name(type) << " " << static_cast<int>(kind) << " p " << p;
        if (kind != Activation::relu) continue;
        const Tensor y = linear(x, w, {.bias = bias, .activation = kind, .dropout = drop}).to(DType::f32);  // no tape
        for (int64_t i = 0; i < y.count(); ++i) EXPECT_EQ(y.data<float>()[i], fused[static_cast<size_t>(i)]);
      }
    }
  }
}

TEST(Linear, RefusesWhatDoesNotFit) {
  const Tensor x = randn({2, 8}, 1), w = randn({4, 8}, 2);
  EXPECT_THROW(linear(x, randn({4, 7}, 1)), Error);
  EXPECT_THROW(linear(x, w, {.residual = randn({2, 4}, 1), .activation = Activation::relu}), Error);
  EXPECT_THROW(linear(x, w, {.residual = randn({2, 4}, 1), .dropout = {.p = 0.1F}}), Error);
  EXPECT_THROW(linear(x, w, {.activation = Activation::relu, .dropout = {.p = 1.5F}}), Error);
  EXPECT_THROW(linear(x, w, {.bias = randn({5}, 1)}), Error);
  EXPECT_THROW(linear(x.to(DType::bf16), w, {.copy = randn({4, 7}, 1).to(DType::bf16)}), Error);
}

}  // namespace
}  // namespace mh
