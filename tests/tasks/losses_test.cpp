// Losses made of ops against their formulas in double precision, and their gradients against finite differences.
#include "multihead/tasks/losses.h"

#include <gtest/gtest.h>

#include <cmath>

#include "multihead/autograd/tape.h"
#include "multihead/base/random.h"
#include "multihead/ops/rows/cross_entropy.h"
#include "tests/harness/refusal.h"

namespace mh {
namespace {

Tensor random_table(int64_t rows, int64_t columns, uint64_t seed, double low, double high) {
  Random random(seed);
  const Tensor out = empty({rows, columns});
  for (int64_t n = 0; n < out.count(); ++n)
    out.data<float>()[n] = static_cast<float>(low + (high - low) * random.uniform());
  return out;
}

TEST(SoftCrossEntropy, ValueAndGradientAreThoseOfTheFormula) {
  const int64_t rows = 5, classes = 7;
  const Tensor logits = parameter(random_table(rows, classes, 1, -60, 60)), t = random_table(rows, classes, 2, 0, 1);
  Tape tape;
  const Tensor loss = soft_cross_entropy(logits, t);
  const Tensor gradient = tape.backward(loss).of(logits);
  double wanted = 0;
  for (int64_t r = 0; r < rows; ++r) {
    double sum = 0, weight = 0;
    for (int64_t c = 0; c < classes; ++c) sum += std::exp(logits.item({r, c}));
    for (int64_t c = 0; c < classes; ++c) {
      wanted += t.item({r, c}) * (std::log(sum) - logits.item({r, c}));
      weight += t.item({r, c});
    }
    for (int64_t c = 0; c < classes; ++c)
      EXPECT_NEAR(gradient.item({r, c}), std::exp(logits.item({r, c})) / sum * weight - t.item({r, c}), 1e-5);
  }
  EXPECT_NEAR(loss.item({}), wanted, 1e-5 * wanted);
}

TEST(SoftCrossEntropy, OfOneClassARowIsTheCrossEntropy) {
  const Tensor logits = random_table(2, 3, 3, -2, 2), t = zeros({2, 3});
  t.data<float>()[1] = t.data<float>()[3] = 0.5F;
  EXPECT_NEAR(soft_cross_entropy(logits, t).item({}), cross_entropy(logits, tensor<int32_t>({1, 0}, {2})).loss.item({}),
              1e-6);
  EXPECT_TRUE(refusal_of([&] { soft_cross_entropy(logits, zeros({3, 2})); }).says("[2, 3] and [3, 2]"));
}

// Sequences of 3, 1 and 4 rows.
TEST(RowCrossEntropy, ValueAndGradientAreThoseOfTheFormulaOverEachSequence) {
  const std::vector<int64_t> lengths{3, 1, 4};
  const std::vector<int32_t> targets{2, 0, 1};
  const Sequences at = Sequences::of_lengths(lengths);
  for (const double smoothing : {0.0, 0.1}) {
    const Tensor logits = parameter(random_table(8, 1, 4, -5, 5).reshape({8}));
    Tape tape;
    const CrossEntropy got =
        row_cross_entropy(logits, at, tensor<int32_t>(targets, {3}), static_cast<float>(smoothing));
    const Tensor gradient = tape.backward(got.loss).of(logits);
    double wanted = 0, nats = 0;
    for (int64_t n = 0, begin = 0; n < 3; begin += lengths[static_cast<size_t>(n++)]) {
      const int64_t length = lengths[static_cast<size_t>(n)], right = begin + targets[static_cast<size_t>(n)];
      double sum = 0;
      for (int64_t row = begin; row < begin + length; ++row) sum += std::exp(logits.item({row}));
      nats += std::log(sum) - logits.item({right});
      wanted += (1 - smoothing) * (std::log(sum) - logits.item({right}));
      for (int64_t row = begin; row < begin + length; ++row) {
        const auto share = smoothing / static_cast<double>(length);
        wanted += share * (std::log(sum) - logits.item({row}));
        const double t = (row == right ? 1 - smoothing : 0) + share;
        EXPECT_NEAR(gradient.item({row}), (std::exp(logits.item({row})) / sum - t) / 3, 1e-6);
      }
    }
    EXPECT_NEAR(got.loss.item({}), wanted / 3, 1e-5);
    EXPECT_NEAR(got.nll.item({}), nats, 1e-5);
    EXPECT_EQ(got.counted, 3);
  }
}

TEST(RowCrossEntropy, ATargetOutsideItsSequenceIsRefused) {
  const Sequences at = Sequences::of_lengths({2, 2});
  const Tensor logits = zeros({4});
  EXPECT_TRUE(refusal_of([&] {
                row_cross_entropy(logits, at, tensor<int32_t>({0, 2}, {2}));
              }).says("the target of sequence 1 is row 2; expected one of its 2"));
  EXPECT_TRUE(refusal_of([&] { row_cross_entropy(zeros({3}), at, tensor<int32_t>({0, 0}, {2})); }).says("3 logits"));
}

// Also of logits whose exponentials overflow.
TEST(BinaryCrossEntropy, ValueAndGradientAreThoseOfTheFormula) {
  for (const double smoothing : {0.0, 0.2}) {
    const Tensor logits = parameter(random_table(4, 3, 5, -4, 4)), t = zeros({4, 3});
    logits.detach().data<float>()[0] = 200;
    logits.detach().data<float>()[4] = -200;
    for (const int n : {1, 3, 4, 8, 11}) t.data<float>()[n] = 1;
    Tape tape;
    const Tensor loss = binary_cross_entropy(logits, t, static_cast<float>(smoothing));
    const Tensor gradient = tape.backward(loss).of(logits);
    double wanted = 0;
    for (int64_t n = 0; n < 12; ++n) {
      const double z = logits.item({n / 3, n % 3}), p = 1 / (1 + std::exp(-z));
      const double target = (1 - smoothing) * t.item({n / 3, n % 3}) + smoothing / 2;
      wanted += (std::max(z, 0.0) + std::log1p(std::exp(-std::abs(z))) - target * z) / 12;
      EXPECT_NEAR(gradient.item({n / 3, n % 3}), (p - target) / 12, 1e-6);
    }
    EXPECT_NEAR(loss.item({}), wanted, 1e-5 * wanted);
  }
  EXPECT_TRUE(refusal_of([] { binary_cross_entropy(zeros({2, 3}), zeros({3, 2})); }).says("[2, 3] and [3, 2]"));
  EXPECT_TRUE(refusal_of([] { binary_cross_entropy(zeros({1, 1}), full({1, 1}, 0.5)); }).says("target 0 is 0.5"));
}

TEST(SquaredError, ValueAndGradientAreThoseOfTheFormula) {
  const Tensor x = parameter(random_table(6, 1, 6, -3, 3)), t = random_table(6, 1, 7, -3, 3);
  Tape tape;
  const Tensor loss = squared_error(x, t);
  const Tensor gradient = tape.backward(loss).of(x);
  double wanted = 0;
  for (int64_t n = 0; n < 6; ++n) {
    const double off = x.item({n, 0}) - t.item({n, 0});
    wanted += off * off / 6;
    EXPECT_NEAR(gradient.item({n, 0}), 2 * off / 6, 1e-6);
  }
  EXPECT_NEAR(loss.item({}), wanted, 1e-5);
  EXPECT_TRUE(refusal_of([] { squared_error(zeros({2}), zeros({3})); }).says("different shapes"));
}

// Central differences of both, a step wide enough for f32.
TEST(LabelLosses, GradientsAreFiniteDifferences) {
  const Tensor t = zeros({2, 3});
  t.data<float>()[1] = t.data<float>()[5] = 1;
  const auto loss_of = [&](const Tensor& x, bool binary) {
    return binary ? binary_cross_entropy(x, t, 0.1F) : squared_error(x, t);
  };
  for (const bool binary : {true, false}) {
    const Tensor x = parameter(random_table(2, 3, 8, -2, 2));
    Tape tape;
    const Tensor gradient = tape.backward(loss_of(x, binary)).of(x);
    for (int64_t n = 0; n < 6; ++n) {
      constexpr float kStep = 1.0F / 64;
      const Tensor up = x.detach().clone(), down = x.detach().clone();
      up.data<float>()[n] += kStep;
      down.data<float>()[n] -= kStep;
      const double slope = (double{loss_of(up, binary).item({})} - loss_of(down, binary).item({})) / (2 * kStep);
      EXPECT_NEAR(gradient.item({n / 3, n % 3}), slope, 1e-4) << binary << n;
    }
  }
}

}  // namespace
}  // namespace mh
