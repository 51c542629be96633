// Hit rate, NDCG and mean reciprocal rank: scikit-learn's figures.
#include "multihead/metrics/ranking.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <vector>

#include "tests/harness/refusal.h"
#include "tests/metrics/golden.h"

namespace mh {
namespace {

using Ranks = std::vector<int64_t>;
using Scores = std::vector<float>;

TEST(Ranking, IsScikitLearns) {
  const nlohmann::json rows = golden_json("ranking.json");
  ASSERT_GE(rows.size(), 4u);
  for (const nlohmann::json& row : rows) {
    Ranks ranks;
    for (size_t i = 0; i < row.at("scores").size(); ++i)
      ranks.push_back(rank_of(row.at("scores").at(i).get<Scores>(), row.at("relevant").at(i).get<size_t>()));
    const int64_t k = row.at("k");
    expect_same_sum(ndcg(ranks, k), row.at("ndcg").get<double>(), row);
    expect_same_sum(hit_rate(ranks, k), row.at("hit_rate").get<double>(), row);
    expect_same_sum(mean_reciprocal_rank(ranks), row.at("mrr").get<double>(), row);
  }
}

TEST(Ranking, ATieGivesTheLastPlace) {
  EXPECT_EQ(rank_of(Scores{1, 1, 1}, 0), 3);
  EXPECT_EQ(rank_of(Scores{2, 1, 3}, 0), 2);
  EXPECT_EQ(rank_of(Scores{NAN, 1}, 0), 2);
  EXPECT_EQ(rank_of(Scores{NAN, 1}, 1), 2);
}

TEST(Ranking, TheLastPlaceCounts) {
  EXPECT_EQ(hit_rate(Ranks{3, 4}, 3), 0.5);
  EXPECT_EQ(ndcg(Ranks{3, 4}, 3), 0.25);
}

TEST(Ranking, RefusesWhatIsNoRank) {
  EXPECT_TRUE(refusal_of([] { hit_rate({}, 1); }).says("hit_rate: no ranks"));
  EXPECT_TRUE(refusal_of([] { ndcg(Ranks{0}, 1); }).says("a rank of 0; ranks begin at 1"));
  EXPECT_TRUE(refusal_of([] { ndcg(Ranks{1}, 0); }).says("the first 0 places"));
  EXPECT_TRUE(refusal_of([] { rank_of(Scores{1}, 1); }).says("item 1 of 1"));
}

}  // namespace
}  // namespace mh
