// The linear layer: values and gradients in double, fused tails, bf16 with master weights, refusals.
#include "multihead/ops/linear.h"

#include <gtest/gtest.h>

#include <cmath>

#include "multihead/autograd/tape.h"

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

TEST(Linear, RefusesWhatDoesNotFit) {
  const Tensor x = randn({2, 8}, 1), w = randn({4, 8}, 2);
  EXPECT_THROW(linear(x, randn({4, 7}, 1)), Error);
  EXPECT_THROW(linear(x, w, {.residual = randn({2, 4}, 1), .activation = Activation::relu}), Error);
  EXPECT_THROW(linear(x, w, {.bias = randn({5}, 1)}), Error);
  EXPECT_THROW(linear(x.to(DType::bf16), w, {.copy = randn({4, 7}, 1).to(DType::bf16)}), Error);
}

}  // namespace
}  // namespace mh
