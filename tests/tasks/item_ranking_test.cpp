// Ranks among items that were not had, and the baselines, by hand and against a naive count.
#include "multihead/tasks/item_ranking.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "multihead/base/random.h"

namespace mh {
namespace {

constexpr Catalogue kCatalogue{4, 10};  // items 4 … 9

TEST(ItemRanks, CountOnlyItemsThatWereNotHadAndTiesAreLost) {
  //                              <- special ->  4     5     6     7     8     9
  const std::vector<float> scores{9, 9, 9, 9, 0.9F, 0.5F, 0.5F, 0.7F, 0.1F, 0.5F};
  const std::vector<int32_t> before{4}, all_others{4, 5, 6, 7, 9}, itself{4, 5};
  EXPECT_EQ(unseen_rank(scores, {{}, 4}, kCatalogue), 1);
  EXPECT_EQ(unseen_rank(scores, {{}, 5}, kCatalogue), 5);
  EXPECT_EQ(unseen_rank(scores, {before, 5}, kCatalogue), 4);
  EXPECT_EQ(unseen_rank(scores, {before, 7}, kCatalogue), 1);
  EXPECT_EQ(unseen_rank(scores, {all_others, 8}, kCatalogue), 1);
  EXPECT_EQ(unseen_rank(scores, {itself, 5}, kCatalogue), 4);  // had before, and ranked all the same
}

// Twelve users with random histories.
class Baselines : public testing::Test {
 protected:
  Baselines() {
    Random random(3);
    for (int user = 0; user < 12; ++user) {
      histories_.emplace_back();
      for (int64_t n = 1 + random.below(5); n > 0; --n)
        histories_.back().push_back(4 + static_cast<int32_t>(random.below(6)));
    }
    for (const std::vector<int32_t>& items : histories_)
      left_out_.push_back({items, 4 + static_cast<int32_t>(random.below(6))});
  }
  // 1 and the items not had whose score is not smaller, in double precision.
  int64_t rank(size_t user, const std::vector<double>& scores) const {
    const std::set<int32_t> had(histories_[user].begin(), histories_[user].end());
    const int32_t item = left_out_[user].item;
    int64_t out = 1;
    for (int32_t other = 4; other < 10; ++other)
      out += other != item && had.count(other) == 0 &&
             scores[static_cast<size_t>(other)] >= scores[static_cast<size_t>(item)] - 1e-6;
    return out;
  }
  int64_t users_with(int32_t a, int32_t b) const {
    int64_t out = 0;
    for (const std::vector<int32_t>& items : histories_) {
      const std::set<int32_t> had(items.begin(), items.end());
      out += had.count(a) * had.count(b);
    }
    return out;
  }
  std::vector<std::vector<int32_t>> histories_;
  std::vector<LeftOut> left_out_;
};

TEST_F(Baselines, PopularityCountsEvents) {
  std::vector<double> counts(10);
  for (const auto& items : histories_)
    for (const int32_t item : items) ++counts[static_cast<size_t>(item)];
  const std::vector<int64_t> ranks = popularity_ranks(left_out_, kCatalogue);
  for (size_t user = 0; user < histories_.size(); ++user) EXPECT_EQ(ranks[user], rank(user, counts)) << user;
}

TEST_F(Baselines, NeighboursAreThoseOfTheLastThreeItems) {
  const std::vector<int64_t> ranks = neighbour_ranks(left_out_, kCatalogue);
  for (size_t user = 0; user < histories_.size(); ++user) {
    std::vector<double> scores(10);
    const auto& items = histories_[user];
    for (size_t n = items.size() - std::min<size_t>(3, items.size()); n < items.size(); ++n)
      for (int32_t other = 4; other < 10; ++other)
        if (const int64_t both = users_with(items[n], other); both > 0)
          scores[static_cast<size_t>(other)] +=
              static_cast<double>(both) /
              std::sqrt(static_cast<double>(users_with(items[n], items[n]) * users_with(other, other)));
    EXPECT_EQ(ranks[user], rank(user, scores)) << user;
  }
}

TEST(ItemRanks, MetricsAreInPercent) {
  const std::vector<int64_t> ranks{1, 3, 10, 11};
  const Metrics metrics = metrics_of_ranks(ranks);
  EXPECT_DOUBLE_EQ(value_of(metrics, "hr@10"), 75);
  EXPECT_NEAR(value_of(metrics, "ndcg@10"), 100 * (1 + 1 / std::log2(4.0) + 1 / std::log2(11.0)) / 4, 1e-9);
}

}  // namespace
}  // namespace mh
