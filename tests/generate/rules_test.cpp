// Lengths and repetition, one row at a time.
#include "multihead/generate/rules.h"

#include <gtest/gtest.h>

#include <cmath>

namespace mh::detail {
namespace {

constexpr int32_t kLast = 2;

TEST(Rules, NoneLookAtTheLogitsByDefault) {
  EXPECT_FALSE(changes_logits({}));
  EXPECT_TRUE(changes_logits({.min_length = 1}));
  EXPECT_TRUE(changes_logits({.repetition_penalty = 1.1F}));
  EXPECT_TRUE(changes_logits({.no_repeat_ngram = 3}));
}

TEST(Rules, RepetitionWeakensEachWrittenTokenOnce) {
  std::vector<float> logits{1, -1, 4, 3, -2};
  apply_rules({.repetition_penalty = 2}, {3, 4, 3, 3}, kLast, logits.data());
  EXPECT_EQ(logits, (std::vector<float>{1, -1, 4, 1.5F, -4}));
}

TEST(Rules, NoSequenceOfTokensIsFinishedTwice) {
  const auto forbidden = [](int64_t n, const std::vector<int32_t>& written) {
    std::vector<float> logits(8, 0);
    apply_rules({.no_repeat_ngram = n}, written, kLast, logits.data());
    std::vector<int32_t> out;
    for (int32_t v = 0; v < 8; ++v) {
      if (std::isinf(logits[v])) out.push_back(v);
    }
    return out;
  };
  using Ids = std::vector<int32_t>;
  EXPECT_EQ(forbidden(1, {5, 3, 5}), (Ids{3, 5}));
  EXPECT_EQ(forbidden(2, {5, 3, 5}), (Ids{3}));
  EXPECT_EQ(forbidden(2, {5, 5}), (Ids{5}));
  EXPECT_EQ(forbidden(3, {4, 5, 6, 7, 4, 5}), (Ids{6}));
  EXPECT_EQ(forbidden(3, {4, 5, 6, 4, 5, 7, 4, 5}), (Ids{6, 7}));
  EXPECT_EQ(forbidden(3, {4, 5}), (Ids{}));
  EXPECT_EQ(forbidden(2, {}), (Ids{}));
}

TEST(Rules, TheEndWaitsForTheShortestLength) {
  std::vector<float> logits(4, 0);
  apply_rules({.min_length = 2}, {3, 3}, kLast, logits.data());
  EXPECT_EQ(logits[kLast], 0);
  apply_rules({.min_length = 3}, {3, 3}, kLast, logits.data());
  EXPECT_TRUE(std::isinf(logits[kLast]));
}

TEST(Rules, TheSmallestLimitCounts) {
  EXPECT_EQ(length_limit({}, 10, 256), 32);
  EXPECT_EQ(length_limit({}, 200, 256), 256);
  EXPECT_EQ(length_limit({.max_length = 20}, 10, 256), 20);
  EXPECT_EQ(length_limit({.max_length = 500}, 200, 256), 256);
  EXPECT_EQ(length_limit({.length_factor = 1.5, .length_offset = 1}, 5, 256), 8);
  EXPECT_EQ(length_limit({.length_factor = 1e6, .length_offset = 1e6}, 250, 256), 256);
}

}  // namespace
}  // namespace mh::detail
