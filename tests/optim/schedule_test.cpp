// Learning rates at the steps where their formulas turn.
#include "multihead/optim/schedule.h"

#include <gtest/gtest.h>

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

TEST(Schedule, NamesGoBothWays) {
  for (const ScheduleKind kind :
       {ScheduleKind::constant, ScheduleKind::linear, ScheduleKind::cosine, ScheduleKind::paper})
    EXPECT_EQ(schedule_named(name(kind)), kind);
  EXPECT_FALSE(schedule_named("cosin"));
}

}  // namespace
}  // namespace mh
