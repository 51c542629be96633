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

TEST(AdamW, ClipsByTheNormOfAll) {
  const Tensor a = parameter(full({1}, 0)), b = parameter(full({1}, 0));
  AdamW optimiser({{"a", a}, {"b", b}}, {.clip = 1});
  Gradients gradients;
  gradients.add(a.trace(), full({1}, 3));
  gradients.add(b.trace(), full({1}, 4));
  EXPECT_DOUBLE_EQ(optimiser.step(gradients, 0.1), 5);
  EXPECT_NEAR(optimiser.state().at("m.a").item({0}), 0.1 * 3 / 5, 1e-7);
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

}  // namespace
}  // namespace mh
