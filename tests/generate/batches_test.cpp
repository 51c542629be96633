// How sentences are put together.
#include "multihead/generate/batches.h"

#include <gtest/gtest.h>

namespace mh::detail {
namespace {

using Batches = std::vector<std::vector<int64_t>>;

TEST(Batches, LongestFirstWithinTheBudget) {
  EXPECT_EQ(cut_batches({3, 9, 5, 9, 1}, 1, 14, 1), (Batches{{1}, {3, 2}, {0, 4}}));
  EXPECT_EQ(cut_batches({3, 9, 5, 9, 1}, 4, 4 * 14, 1), (Batches{{1}, {3, 2}, {0, 4}}));
}

TEST(Batches, ASentencePastTheBudgetIsAloneAndNoneIsLost) {
  EXPECT_EQ(cut_batches({30, 2, 40}, 1, 10, 1), (Batches{{2}, {0}, {1}}));
  EXPECT_EQ(cut_batches({1, 1}, 4, 1, 1), (Batches{{0}, {1}}));
  EXPECT_TRUE(cut_batches({}, 4, 100, 3).empty());
}

TEST(Batches, WorkersEndTogetherOverSmallLastOnes) {
  const Batches cut = cut_batches(std::vector<int64_t>(512, 8), 1, 5000, 2);
  std::vector<size_t> sizes;
  for (const auto& batch : cut) sizes.push_back(batch.size());
  EXPECT_EQ(sizes, (std::vector<size_t>{128, 96, 72, 54, 40, 32, 32, 32, 26}));
}

TEST(Batches, OneWorkerOrFewTokensAreNotCut) {
  EXPECT_EQ(cut_batches(std::vector<int64_t>(512, 8), 1, 5000, 1).size(), 1U);
  EXPECT_EQ(cut_batches({4, 4, 4, 4}, 1, 1000, 2), (Batches{{0, 1, 2, 3}}));
}

}  // namespace
}  // namespace mh::detail
