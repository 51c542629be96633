// Learning rates at the steps where their formulas turn.
#include "multihead/optim/schedule.h"

#include <gtest/gtest.h>

#include <cmath>

namespace mh {
namespace {

TEST(Schedule, WarmsUpInALine) {
  const Schedule schedule{.rate = 2, .warmup = 4, .steps = 12};
  EXPECT_DOUBLE_EQ(schedule.at(0), 0.5);
  EXPECT_DOUBLE_EQ(schedule.at(3), 2);
}

TEST(Schedule, EachKindEndsAsItsFormulaSays) {
  const auto at = [](ScheduleKind kind, int64_t step) {
    return Schedule{.kind = kind, .rate = 1, .warmup = 4, .steps = 12}.at(step);
  };
  EXPECT_DOUBLE_EQ(at(ScheduleKind::constant, 11), 1);
  EXPECT_DOUBLE_EQ(at(ScheduleKind::linear, 8), 0.5);
  EXPECT_DOUBLE_EQ(at(ScheduleKind::linear, 12), 0);
  EXPECT_DOUBLE_EQ(at(ScheduleKind::cosine, 4), 1);
  EXPECT_DOUBLE_EQ(at(ScheduleKind::cosine, 8), 0.5);
  EXPECT_NEAR(at(ScheduleKind::cosine, 12), 0, 1e-15);
  EXPECT_NEAR(at(ScheduleKind::cosine, 99), 0, 1e-15);
  EXPECT_DOUBLE_EQ(at(ScheduleKind::paper, 15), 0.5);
}

// rate · √(warmup / (s + 1)) after the warm-up, which a warm-up of 0 counts as 1: never 0, never above the rate.
TEST(Schedule, ThePapersHoldsWithoutAWarmUp) {
  for (const int64_t warmup : {0, 1}) {
    const Schedule schedule{.kind = ScheduleKind::paper, .rate = 2, .warmup = warmup, .steps = 100};
    EXPECT_DOUBLE_EQ(schedule.at(0), 2) << warmup;
    EXPECT_DOUBLE_EQ(schedule.at(3), 1) << warmup;
    EXPECT_DOUBLE_EQ(schedule.at(15), 0.5) << warmup;
  }
}

TEST(Schedule, ThePapersMeetsItsWarmUp) {
  const Schedule schedule{.kind = ScheduleKind::paper, .rate = 3, .warmup = 16, .steps = 100};
  EXPECT_DOUBLE_EQ(schedule.at(7), 1.5);
  EXPECT_DOUBLE_EQ(schedule.at(15), 3);
  EXPECT_DOUBLE_EQ(schedule.at(63), 1.5);
}

TEST(Schedule, EndsAtItsFloor) {
  const auto at = [](ScheduleKind kind, int64_t step) {
    return Schedule{.kind = kind, .rate = 2, .warmup = 4, .steps = 12, .floor = 0.25}.at(step);
  };
  for (const ScheduleKind kind : {ScheduleKind::linear, ScheduleKind::cosine}) {
    EXPECT_DOUBLE_EQ(at(kind, 0), 0.5) << name(kind);  // the warm-up begins where it did
    EXPECT_DOUBLE_EQ(at(kind, 4), 2) << name(kind);
    EXPECT_DOUBLE_EQ(at(kind, 8), 2 * (0.25 + 0.75 / 2)) << name(kind);
    EXPECT_DOUBLE_EQ(at(kind, 12), 0.5) << name(kind);
    EXPECT_DOUBLE_EQ(at(kind, 99), 0.5) << name(kind);
  }
  // A quarter of the way: the line has 3 / 4 left, the cosine (1 + √½) / 2.
  EXPECT_DOUBLE_EQ(at(ScheduleKind::linear, 6), 2 * (0.25 + 0.75 * 0.75));
  EXPECT_DOUBLE_EQ(at(ScheduleKind::cosine, 6), 2 * (0.25 + 0.75 * (1 + std::sqrt(0.5)) / 2));
  EXPECT_DOUBLE_EQ(at(ScheduleKind::paper, 15), 1);     // √(4 / 16) is above the floor
  EXPECT_DOUBLE_EQ(at(ScheduleKind::paper, 255), 0.5);  // √(4 / 256) is not
  EXPECT_DOUBLE_EQ(at(ScheduleKind::constant, 99), 2);
}

TEST(Schedule, NamesGoBothWays) {
  for (const ScheduleKind kind :
       {ScheduleKind::constant, ScheduleKind::linear, ScheduleKind::cosine, ScheduleKind::paper})
    EXPECT_EQ(schedule_named(name(kind)), kind);
  EXPECT_FALSE(schedule_named("cosin"));
}

}  // namespace
}  // namespace mh
