// Time left and tokens a second, by a clock of the test's own.
#include "multihead/train/log/pace.h"

#include <gtest/gtest.h>

namespace mh::detail {
namespace {

// Epochs of 10 steps: nine of 2 s with 1000 tokens, and a last one of 0.1 s with 10.
constexpr double kEpoch = 9 * 2 + 0.1;

TEST(Pace, TimeLeftHoldsAtTheEndOfEachEpoch) {
  Pace pace;
  double now = 100;  // a clock does not begin at 0
  const int64_t steps = 400;
  for (int64_t step = 1; step <= steps; ++step) {
    const bool last = step % 10 == 0;
    const double begin = now;
    now += last ? 0.1 : 2;
    pace.step(begin, now, last ? 10 : 1000);
    const double truth = static_cast<double>(steps - step) * kEpoch / 10;
    if (step >= 10) {
      EXPECT_NEAR(pace.seconds_left(steps - step), truth, 0.12 * truth) << step;
      EXPECT_NEAR(pace.tokens_per_second(), 500, 5) << step;
    }
  }
  EXPECT_EQ(pace.seconds_left(0), 0);
}

TEST(Pace, TimeBetweenStepsCounts) {
  Pace pace;
  double now = 7;
  for (int64_t step = 1; step <= 40; ++step) {
    pace.step(now, now + 1, 100);
    now += step % 10 == 0 ? 6 : 1;  // a validation of 5 s after every tenth
  }
  pace.step(now, now + 1, 100);
  EXPECT_NEAR(pace.seconds_left(100), 150, 5);
  EXPECT_NEAR(pace.tokens_per_second(), 100, 1e-9);
}

TEST(Pace, FollowsAMachineThatBecomesSlower) {
  Pace pace;
  double now = 0;
  for (int64_t step = 0; step < 200; ++step, now += 1) pace.step(now, now + 1, 100);
  for (int64_t step = 0; step < 100; ++step, now += 4) pace.step(now, now + 4, 100);
  EXPECT_NEAR(pace.seconds_left(10), 40, 0.5);
}

TEST(Pace, TheFirstStepIsAllThereIsToGoBy) {
  Pace pace;
  EXPECT_EQ(pace.tokens_per_second(), 0);
  pace.step(50, 52, 300);
  EXPECT_EQ(pace.tokens_per_second(), 150);
  EXPECT_EQ(pace.seconds_left(3), 6);
}

}  // namespace
}  // namespace mh::detail
