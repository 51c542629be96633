// Philox against its published vectors, and the streams against their distributions.
#include "multihead/base/random.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <vector>

#include "multihead/base/error.h"

namespace mh {
namespace {

using Words = std::array<uint32_t, 4>;

constexpr uint32_t kOnes = 0xffffffff;
constexpr Words kPi{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344};

TEST(Philox, KnownAnswersOfTenRounds) {
  EXPECT_EQ(philox4x32<10>({0, 0, 0, 0}, {0, 0}), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox4x32<10>({kOnes, kOnes, kOnes, kOnes}, {kOnes, kOnes}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32<10>(kPi, {0xa4093822, 0x299f31d0}), (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, KnownAnswersOfSevenRounds) {
  EXPECT_EQ(philox4x32<7>({0, 0, 0, 0}, {0, 0}), (Words{0x5f6fb709, 0x0d893f64, 0x4f121f81, 0x4f730a48}));
  EXPECT_EQ(philox4x32<7>({kOnes, kOnes, kOnes, kOnes}, {kOnes, kOnes}),
            (Words{0x5207ddc2, 0x45165e59, 0x4d8ee751, 0x8c52f662}));
  EXPECT_EQ(philox4x32<7>(kPi, {0xa4093822, 0x299f31d0}), (Words{0x4dfccaba, 0x190a87f0, 0xc47362ba, 0xb6b5242a}));
}

TEST(Philox, ComputesAtCompileTime) {
  static_assert(philox4x32<10>({0, 0, 0, 0}, {0, 0})[0] == 0x6627e8d5);
  static_assert(philox4x32<0>({1, 2, 3, 4}, {5, 6})[3] == 4);
}

TEST(Random, BitsAreTheCounterUnderTheSeed) {
  const uint64_t seed = 0x299f31d0a4093822, group = 0x85a308d3243f6a88, stream = 0x0370734413198a2e;
  EXPECT_EQ(random_bits(seed, group, stream), (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Random, StreamsAndSeedsDiffer) {
  EXPECT_NE(random_bits(1, 0), random_bits(2, 0));
  EXPECT_NE(random_bits(1, 0), random_bits(1, 1));
  EXPECT_NE(random_bits(1, 0, 0), random_bits(1, 0, 1));
}

TEST(Random, UniformHasItsMoments) {
  double sum = 0, squares = 0;
  constexpr int kGroups = 50000;
  for (uint64_t g = 0; g < kGroups; ++g) {
    for (const double x : random_uniform(7, g)) {
      ASSERT_GE(x, 0);
      ASSERT_LT(x, 1);
      sum += x;
      squares += x * x;
    }
  }
  const double n = 4.0 * kGroups;
  EXPECT_NEAR(sum / n, 0.5, 5 * std::sqrt(1 / 12.0 / n));
  EXPECT_NEAR(squares / n, 1 / 3.0, 5 * std::sqrt(4 / 45.0 / n));
}

TEST(Random, NormalHasItsMomentsAndTails) {
  double sum = 0, squares = 0, fourth = 0;
  int64_t beyond_two = 0;
  constexpr int kGroups = 50000;
  for (uint64_t g = 0; g < kGroups; ++g) {
    for (const double x : random_normal(11, g)) {
      ASSERT_LT(std::abs(x), 6.8);
      sum += x;
      squares += x * x;
      fourth += x * x * x * x;
      beyond_two += std::abs(x) > 2 ? 1 : 0;
    }
  }
  const double n = 4.0 * kGroups;
  EXPECT_NEAR(sum / n, 0, 5 / std::sqrt(n));
  EXPECT_NEAR(squares / n, 1, 5 * std::sqrt(2 / n));
  EXPECT_NEAR(fourth / n, 3, 5 * std::sqrt(96 / n));
  EXPECT_NEAR(static_cast<double>(beyond_two) / n, std::erfc(std::sqrt(2.0)), 5 * std::sqrt(0.0455 / n));
}

TEST(Random, NormalIsBoxAndMuller) {
  for (uint64_t g = 0; g < 20000; ++g) {
    const Words words = random_bits(3, g);
    const std::array<double, 4> normal = random_normal(3, g);
    for (size_t i = 0; i < 4; i += 2) {
      const double radius = std::sqrt(-2 * std::log((words[i] + 0.5) * 0x1p-32));
      const double angle = 2 * M_PI * (words[i + 1] * 0x1p-32);
      ASSERT_NEAR(normal[i], radius * std::cos(angle), 1e-14);
      ASSERT_NEAR(normal[i + 1], radius * std::sin(angle), 1e-14);
    }
  }
}

TEST(Random, SequenceRepeatsForASeed) {
  Random a(5), b(5), c(6);
  bool differs = false;
  for (int i = 0; i < 100; ++i) {
    const double x = a.normal();
    ASSERT_EQ(x, b.normal());
    differs = differs || x != c.normal();
  }
  EXPECT_TRUE(differs);
}

TEST(Random, SequenceIsTheStreamInOrder) {
  Random random(5, 9);
  for (uint64_t g = 0; g < 3; ++g) {
    for (const uint32_t word : random_bits(5, g, 9)) EXPECT_EQ(random.bits(), word);
  }
}

TEST(Random, BelowReachesEveryNumberAndNoMore) {
  Random random(1);
  std::vector<int> seen(7);
  for (int i = 0; i < 7000; ++i) ++seen[static_cast<size_t>(random.below(7))];
  for (const int n : seen) EXPECT_NEAR(n, 1000, 200);
  EXPECT_EQ(random.below(1), 0);
  EXPECT_THROW(random.below(0), Error);
}

}  // namespace
}  // namespace mh
