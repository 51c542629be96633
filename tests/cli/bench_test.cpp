// The protocol of the benchmarks, the counting of work, and the choice of cases.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "bench/cases.h"
#include "bench/run.h"
#include "bench/trial.h"
#include "multihead/base/parallel.h"
#include "multihead/check/limits.h"

namespace mh::bench {
namespace {

class OneThread : public testing::Test {
 protected:
  void SetUp() override {
    before_ = threads();
    set_threads(1);
  }
  void TearDown() override { set_threads(before_); }

 private:
  int before_ = 1;
};

TEST(Quantile, LiesWhereItsShareOfTheValuesIsBelow) {
  EXPECT_EQ(quantile({3, 1, 2}, 0.5), 2);
  EXPECT_EQ(quantile({5}, 0.9), 5);
  std::vector<double> values;
  for (int i = 0; i <= 100; ++i) values.push_back(100 - i);
  EXPECT_EQ(quantile(values, 0.9), 90);
}

using Measure = OneThread;

TEST_F(Measure, TheReferenceItselfIsTheWholeOfTheLimit) {
  const double work = run_multiply_adds();
  const Outcome outcome = measure({[] { run_multiply_adds(); }, work}, {}, {.seconds = 0.05, .least = 9});
  EXPECT_NEAR(outcome.fraction, 1, 0.25);
  EXPECT_GE(outcome.fraction_p90, outcome.fraction);
  EXPECT_NEAR(outcome.rate * outcome.seconds, work, work * 1e-6);
  EXPECT_GE(outcome.trials, 9);
  EXPECT_FALSE(outcome.ratio.has_value());
}

TEST_F(Measure, TwiceTheTimeIsHalfTheFractionAndTwiceTheRatio) {
  const double work = run_multiply_adds();
  const Subject plain{[] { run_multiply_adds(); }, work};
  const Subject twice{[] { run_multiply_adds(), run_multiply_adds(); }, work};
  const Outcome outcome = measure(twice, {}, {.seconds = 0.05, .least = 9}, &plain);
  EXPECT_NEAR(outcome.fraction, 0.5, 0.15);
  ASSERT_TRUE(outcome.ratio.has_value());
  EXPECT_NEAR(*outcome.ratio, 2, 0.5);
}

TEST_F(Measure, AReadIsSetAgainstAReadOfTheSameMemory) {
  const std::vector<Tensor> memory{full({1 << 16}, 1)};
  // Whoever shares the machine may disturb one measurement, hardly five.
  double fraction = 0;
  for (int turn = 0; turn < 5 && std::abs(fraction - 1) > 0.4; ++turn)
    fraction = measure({[&] { run_plain_read(memory); }, 4.0 * (1 << 16)}, {Bound::plain_read, memory},
                       {.seconds = 0.05, .least = 9})
                   .fraction;
  EXPECT_NEAR(fraction, 1, 0.4);
}

TEST(Operations, ForwardCountsFourDAPairAndBackwardTenD) {
  Case c{.name = "", .sizes = {.B = 2, .H = 3, .Hkv = 3, .Tq = 5, .Tk = 7, .Dk = 64, .Dv = 64}, .comparison = {}};
  EXPECT_EQ(operations(c), 4.0 * 2 * 3 * 5 * 7 * 64);
  c.pass = Pass::backward;
  EXPECT_EQ(operations(c), 10.0 * 2 * 3 * 5 * 7 * 64);
  c.pass = Pass::forward;
  c.sizes.Dv = 96;
  EXPECT_EQ(operations(c), 2.0 * (64 + 96) * 2 * 3 * 5 * 7);
}

// Pairs that a window of 256 keys up to and with the query's own position keeps, and those of the tiles they lie in.
TEST(Operations, AWindowCountsItsPairsAndItsTiles) {
  const Sizes s{.B = 1, .H = 1, .Hkv = 1, .Tq = 600, .Tk = 700, .Dk = 1, .Dv = 1};
  double kept = 0;
  std::set<std::pair<int64_t, int64_t>> tiles;
  for (int64_t i = 0; i < s.Tq; ++i)
    for (int64_t j = 0; j < s.Tk; ++j) {
      const int64_t position = s.Tk - s.Tq + i;
      if (j > position || j < position - 255) continue;
      ++kept;
      tiles.insert({i / 64, j / 64});
    }
  double touched = 0;
  for (const auto& [row, column] : tiles)
    touched += static_cast<double>(std::min<int64_t>(64, s.Tq - row * 64) * std::min<int64_t>(64, s.Tk - column * 64));
  EXPECT_EQ(feature("window_256").kept(s), kept);
  EXPECT_EQ(feature("window_256").touched(s), touched);
}

TEST(Cases, NamesAndSizesTellThemApart) {
  std::set<std::string> seen;
  for (const Case& c : attention_cases({.counts = {1, 2}, .every_case = true}))
    EXPECT_TRUE(seen.insert(fmt::format("{} {} {} {}", c.name, mh::name(c.dtype), name(c.pass), c.threads)).second)
        << c.name;
}

TEST(Cases, TheTableHoldsEveryTypePassAndOption) {
  std::set<std::string> found;
  for (const Case& c : attention_cases({.counts = {1, 2}})) {
    found.insert(std::string(mh::name(c.dtype)) + " " + std::string(name(c.pass)));
    found.insert(c.feature);
  }
  for (const char* each : {"f32 forward", "f32 backward", "bf16 forward", "bf16 backward", "f16 forward",
                           "f16 backward", "f32 decode", "bf16 decode", "f16 decode", "i8 decode"})
    EXPECT_TRUE(found.contains(each)) << each;
  for (const Feature& each : features()) EXPECT_TRUE(found.contains(each.name)) << each.name;
}

TEST(Cases, FiltersNarrowTheTable) {
  const std::vector<Case> all = attention_cases({.counts = {1, 2}});
  const std::vector<Case> quick = select(all, {.quick = true, .dtypes = {}, .passes = {}, .names = {}, .threads = {}});
  EXPECT_LT(quick.size(), 40u);
  EXPECT_GT(quick.size(), 20u);
  const std::vector<Case> few =
      select(all, {.quick = false, .dtypes = {"bf16"}, .passes = {"backward"}, .names = {"t512_d64"}, .threads = {1}});
  ASSERT_EQ(few.size(), 2u);
  for (const Case& c : few) {
    EXPECT_EQ(c.dtype, DType::bf16);
    EXPECT_EQ(c.pass, Pass::backward);
    EXPECT_EQ(c.sizes.Tq, 512);
  }
}

}  // namespace
}  // namespace mh::bench
