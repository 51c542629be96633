// What AdamW and the schedules refuse, each in a sentence that names the number.
#include <gtest/gtest.h>

#include <cmath>

#include "multihead/autograd/tape.h"
#include "multihead/ops/update.h"
#include "multihead/optim/adamw.h"
#include "multihead/optim/schedule.h"
#include "tests/harness/refusal.h"

namespace mh {
namespace {

const double kNone = std::nan("");

Refusal of_settings(const AdamWSettings& settings) {
  return refusal_of([&] { AdamW({{"w", parameter(zeros({2}))}}, settings); });
}

TEST(OptimiserRefusals, Settings) {
  for (const double beta : {kNone, -0.1, 1.0, 1.5, 1 - 1e-12}) {
    EXPECT_TRUE(of_settings({.beta1 = beta}).says("AdamW: the betas are")) << beta;
    EXPECT_TRUE(of_settings({.beta2 = beta}).says("expected both in [0, 1)")) << beta;
    EXPECT_TRUE(of_settings({.mean = beta}).says("AdamW: the mean")) << beta;
  }
  for (const double size : {kNone, -1.0, HUGE_VAL, 1e300}) {
    EXPECT_TRUE(of_settings({.epsilon = size}).says("AdamW: epsilon is")) << size;
    EXPECT_TRUE(of_settings({.weight_decay = size}).says("AdamW: the weight decay is")) << size;
    EXPECT_TRUE(of_settings({.clip = size}).says("AdamW: the norm to clip at is")) << size;
  }
  EXPECT_TRUE(of_settings({.beta1 = 0, .beta2 = 0, .epsilon = 0, .weight_decay = 0}).says("no refusal"));
}

TEST(OptimiserRefusals, Rates) {
  const Tensor w = parameter(full({2}, 1));
  AdamW optimiser({{"w", w}}, {});
  Gradients gradients;
  gradients.add(w.trace(), full({2}, 1));
  for (const double rate : {kNone, -1e-3, HUGE_VAL}) {
    EXPECT_TRUE(refusal_of([&] { optimiser.step(gradients, rate); }).says("AdamW: the learning rate is")) << rate;
  }
  EXPECT_EQ(w.item({0}), 1);
  EXPECT_EQ(optimiser.steps(), 0);
}

TEST(OptimiserRefusals, ParametersGivenTwice) {
  const Tensor w = parameter(zeros({2}));
  const auto said = [](const std::vector<Learned>& learned) { return refusal_of([&] { AdamW(learned, {}); }); };
  EXPECT_TRUE(said({{"a", w}, {"a", parameter(zeros({2}))}}).says("two parameters are named a"));
  EXPECT_TRUE(said({{"a", w}, {"b", w}}).says("b is given twice"));
  EXPECT_TRUE(said({{"a", w}, {"b", parameter(w)}}).says("b is given twice"));
  EXPECT_TRUE(said({{"a", w.detach()}}).says("a cannot be learned"));
  EXPECT_TRUE(said({{"a", parameter(zeros({2}, DType::bf16))}}).says("a cannot be learned"));
}

TEST(OptimiserRefusals, AStateOfANegativeStep) {
  AdamW optimiser({{"w", parameter(zeros({2}))}}, {});
  EXPECT_TRUE(refusal_of([&] { optimiser.restore(optimiser.state(), -1); }).says("step -1"));
}

TEST(OptimiserRefusals, Schedules) {
  const auto said = [](const Schedule& schedule, int64_t step = 0) {
    return refusal_of([&] { static_cast<void>(schedule.at(step)); });
  };
  for (const double rate : {kNone, -1.0, HUGE_VAL})
    EXPECT_TRUE(said({.rate = rate}).says("schedule: the rate is")) << rate;
  for (const double floor : {-0.1, 1.1, static_cast<double>(NAN)})
    EXPECT_TRUE(said({.floor = floor}).says("schedule: the floor is")) << floor;
  EXPECT_TRUE(said({.warmup = -1}).says("-1 of them warm-up"));
  EXPECT_TRUE(said({.steps = -2}).says("-2 steps"));
  EXPECT_TRUE(said({}, -1).says("step -1 is asked for"));
}

TEST(OptimiserRefusals, TheOpItself) {
  const AdamwState state{zeros({2}), zeros({2}), zeros({2})};
  const auto said = [&](const AdamwOptions& options) {
    return refusal_of([&] { adamw(state, full({2}, 1), options); });
  };
  const auto none = static_cast<float>(kNone);
  EXPECT_TRUE(said({.rate = none}).says("adamw: rate"));
  EXPECT_TRUE(said({.rate = -1}).says("adamw: rate -1"));
  EXPECT_TRUE(said({.beta1 = 1}).says("adamw: the betas are 1"));
  EXPECT_TRUE(said({.beta2 = none}).says("adamw: the betas are"));
  EXPECT_TRUE(said({.eps = -1}).says("eps -1"));
  EXPECT_TRUE(said({.decay = none}).says("decay nan"));
  EXPECT_TRUE(said({.gradient_scale = none}).says("adamw: the gradient"));
}

}  // namespace
}  // namespace mh
