// CIDEr-D: the figures of pycocoevalcap.
#include "multihead/metrics/cider.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/harness/refusal.h"
#include "tests/metrics/golden.h"

namespace mh {
namespace {

TEST(CiderD, IsPycocoevalcaps) {
  const nlohmann::json rows = golden_json("cider.json");
  ASSERT_GE(rows.size(), 6u);
  double best = 0;
  for (const nlohmann::json& row : rows) {
    const Cider ours = cider(row.at("hypotheses"), row.at("references"));
    expect_same_sum(ours.score, row.at("score").get<double>(), row);
    best = std::max(best, ours.score);
    ASSERT_EQ(ours.scores.size(), row.at("scores").size());
    for (size_t i = 0; i < ours.scores.size(); ++i)
      expect_same_sum(ours.scores[i], row.at("scores").at(i).get<double>(), row);
  }
  EXPECT_GT(best, 1);
}

TEST(CiderD, OneImageAloneScoresNothing) { EXPECT_EQ(cider({{"a", "cat"}}, {{{"a", "cat"}}}).score, 0); }

TEST(CiderD, RefusesWhatHasNoScore) {
  EXPECT_TRUE(refusal_of([] { cider({}, {}); }).says("cider: no captions"));
  EXPECT_TRUE(refusal_of([] { cider({{"a"}}, {}); }).says("1 captions and references for 0"));
  EXPECT_TRUE(refusal_of([] { cider({{"a"}, {"b"}}, {{{"a"}}, {}}); }).says("caption 2 has no reference"));
}

}  // namespace
}  // namespace mh
