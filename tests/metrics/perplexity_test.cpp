// Perplexity and bits per byte of losses that are known.
#include "multihead/metrics/perplexity.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/harness/refusal.h"

namespace mh {
namespace {

TEST(Perplexity, OfAUniformGuessIsTheNumberOfChoices) {
  EXPECT_DOUBLE_EQ(perplexity(12 * std::log(50.0), 12), 50);
  EXPECT_DOUBLE_EQ(perplexity(12 * std::log(50.0), 6), 2500);
  EXPECT_EQ(perplexity(0, 3), 1);
}

TEST(Perplexity, BitsPerByteOfAFairCoinAreOneEach) {
  EXPECT_DOUBLE_EQ(bits_per_byte(10 * std::log(2.0), 10), 1);
  EXPECT_DOUBLE_EQ(bits_per_byte(10 * std::log(256.0), 10), 8);
}

TEST(Perplexity, OfALossThatIsNotFiniteIsNotFinite) {
  EXPECT_EQ(perplexity(1e6, 1), std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(perplexity(std::nan(""), 1)));
}

TEST(Perplexity, RefusesAnEmptyText) {
  EXPECT_TRUE(refusal_of([] { perplexity(1, 0); }).says("perplexity: a text of 0 tokens or words"));
  EXPECT_TRUE(refusal_of([] { bits_per_byte(1, -1); }).says("bits_per_byte: a text of -1 bytes"));
}

}  // namespace
}  // namespace mh
