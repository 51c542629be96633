// AdamW: its formula in double, clipping, state, and what it does with gradients that are not finite.
#include "multihead/optim/adamw.h"

#include <gtest/gtest.h>

#include <cmath>

#include "multihead/autograd/tape.h"

namespace mh {
namespace {

Gradients given(const Tensor& w, const Tensor& g) {
  Gradients gradients;
  gradients.add(w.trace(), g);
  return gradients;
}

TEST(AdamW, FollowsItsFormula) {
  const Tensor w = parameter(randn({37}, 1));
  const Tensor start = w.detach().clone();
  AdamW optimiser({{"w", w}}, {.beta1 = 0.9, .beta2 = 0.98, .epsilon = 1e-8, .weight_decay = 0.1});
  std::vector<double> value(37), m(37), v(37);
  for (int i = 0; i < 37; ++i) value[i] = start.item({i});
  for (int step = 1; step <= 5; ++step) {
    const Tensor g = randn({37}, static_cast<uint64_t>(10 + step));
    optimiser.step(given(w, g), 0.01);
    for (int i = 0; i < 37; ++i) {
      const double gi = g.item({i});
      m[i] = 0.9 * m[i] + 0.1 * gi;
      v[i] = 0.98 * v[i] + 0.02 * gi * gi;
      const double down = m[i] / (1 - std::pow(0.9, step)) / (std::sqrt(v[i] / (1 - std::pow(0.98, step))) + 1e-8);
      value[i] = value[i] * (1 - 0.01 * 0.1) - 0.01 * down;
    }
  }
  for (int i = 0; i < 37; ++i) EXPECT_NEAR(w.item({i}), value[i], 2e-6 * (1 + std::abs(value[i])));
}

// The decay, too, is taken at a parameter's own rate.
TEST(AdamW, AParameterMayHaveAShareOfTheRate) {
  for (const double share : {1.0, 0.25, 0.0}) {
    const Tensor w = parameter(full({1}, 2)), other = parameter(full({1}, 2));
    AdamW optimiser({{.name = "w", .value = w, .rate = share}, {"other", other}}, {.weight_decay = 0.5});
    double value = 2, whole = 2, m = 0, v = 0;
    for (int step = 1; step <= 3; ++step) {
      const double g = 0.5 * step;
      Gradients gradients;
      gradients.add(w.trace(), full({1}, g));
      gradients.add(other.trace(), full({1}, g));
      optimiser.step(gradients, 0.1);
      m = 0.9 * m + 0.1 * g;
      v = 0.98 * v + 0.02 * g * g;
      const double down = m / (1 - std::pow(0.9, step)) / (std::sqrt(v / (1 - std::pow(0.98, step))) + 1e-8);
      value -= 0.1 * share * (0.5 * value + down);
      whole -= 0.1 * (0.5 * whole + down);
    }
    EXPECT_NEAR(w.item({0}), value, 1e-6);
    EXPECT_NEAR(other.item({0}), whole, 1e-6);
  }
  const Tensor w = parameter(full({1}, 2));
  EXPECT_THROW(AdamW({{.name = "w", .value = w, .rate = -1}}, {}), Error);
  EXPECT_THROW(AdamW({{.name = "w", .value = w, .rate = NAN}}, {}), Error);
}

TEST(AdamW, ClipsByTheNormOfAll) {
  const Tensor a = parameter(full({1}, 0)), b = parameter(full({1}, 0));
  AdamW optimiser({{"a", a}, {"b", b}}, {.clip = 1});
  Gradients gradients;
  gradients.add(a.trace(), full({1}, 3));
  gradients.add(b.trace(), full({1}, 4));
  EXPECT_DOUBLE_EQ(optimiser.step(gradients, 0.1), 5);
  EXPECT_NEAR(optimiser.state().at("m.a").item({0}), 0.1 * 3 / 5, 1e-7);
}

// m after one step is (1 - beta1) times the gradient as the step saw it.
TEST(AdamW, LeavesGradientsBelowTheClipAsTheyAre) {
  for (const double size : {0.0, 0.3, 1.0}) {
    const Tensor w = parameter(full({1}, 0));
    AdamW optimiser({{"w", w}}, {.beta1 = 0.9, .clip = 1});
    EXPECT_NEAR(optimiser.step(given(w, full({1}, size)), 0.1), size, 1e-7);
    EXPECT_NEAR(optimiser.state().at("m.w").item({0}), 0.1 * size, 1e-7) << size;
  }
}

TEST(AdamW, DoesNotClipWhereNoNormIsGiven) {
  const Tensor w = parameter(full({1}, 0));
  AdamW optimiser({{"w", w}}, {.beta1 = 0.9, .clip = 0});
  optimiser.step(given(w, full({1}, 1000)), 0.1);
  EXPECT_NEAR(optimiser.state().at("m.w").item({0}), 100, 1e-4);
}

TEST(AdamW, LeavesATensorWithoutAGradient) {
  const Tensor w = parameter(full({1}, 5)), other = parameter(full({1}, 7));
  AdamW optimiser({{"w", w}, {"other", other}}, {.weight_decay = 0.5});
  optimiser.step(given(w, full({1}, 1)), 0.1);
  EXPECT_EQ(other.item({0}), 7);
  EXPECT_LT(w.item({0}), 5);
}

TEST(AdamW, LeavesEverythingWhereGradientsAreNotFinite) {
  const Tensor w = parameter(full({3}, 1));
  AdamW optimiser({{"w", w}}, {});
  const double norm = optimiser.step(given(w, full({3}, INFINITY)), 0.1);
  EXPECT_FALSE(std::isfinite(norm));
  EXPECT_EQ(w.item({0}), 1);
  EXPECT_EQ(optimiser.steps(), 0);
}

TEST(AdamW, GoesOnFromItsStateBitForBit) {
  const Tensor w = parameter(randn({100}, 1)), u = parameter(w.detach().clone());
  AdamW first({{"w", w}}, {.mean = 0.9}), second({{"w", u}}, {.mean = 0.9});
  for (uint64_t step = 0; step < 3; ++step) first.step(given(w, randn({100}, step)), 0.01);
  NamedTensors kept;
  for (const auto& [name, tensor] : first.state()) kept[name] = tensor.clone();
  u.detach().copy_from(w.detach());
  second.restore(kept, first.steps());
  for (uint64_t step = 3; step < 6; ++step) {
    first.step(given(w, randn({100}, step)), 0.01);
    second.step(given(u, randn({100}, step)), 0.01);
  }
  for (int64_t i = 0; i < 100; ++i) {
    EXPECT_EQ(w.item({i}), u.item({i}));
    EXPECT_EQ(first.means().at("w").item({i}), second.means().at("w").item({i}));
  }
  EXPECT_THROW(second.restore({}, 1), Error);
}

// (1 - d) · Σ d^(t-i) · wᵢ / (1 - dᵗ), of tensors without a gradient too.
TEST(AdamW, TheRunningMeanIsCorrectedForItsStart) {
  const Tensor w = parameter(randn({9}, 1)), still = parameter(full({1}, 3));
  AdamW optimiser({{"w", w}, {"still", still}}, {.mean = 0.7});
  std::vector<double> sum(9);
  double weight = 0;
  for (uint64_t step = 1; step <= 4; ++step) {
    optimiser.step(given(w, randn({9}, step)), 0.5);
    weight = 0.7 * weight + 0.3;
    for (int64_t i = 0; i < 9; ++i) {
      double& s = sum[static_cast<size_t>(i)];
      s = 0.7 * s + 0.3 * w.item({i});
      const double mean = optimiser.means().at("w").item({i});
      EXPECT_NEAR(mean, s / weight, 1e-6 * (1 + std::abs(s / weight)));
      EXPECT_TRUE(step > 1 || mean == w.item({i}));
    }
    EXPECT_EQ(optimiser.means().at("still").item({0}), 3);
  }
}

}  // namespace
}  // namespace mh
