// Entities and their F1: seqeval's, on tags of every kind.
#include "multihead/metrics/entities.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/harness/refusal.h"
#include "tests/metrics/golden.h"

namespace mh {
namespace {

using Tags = std::vector<std::string>;

TEST(Entities, AreSeqevals) {
  const nlohmann::json rows = golden_json("entities.json");
  ASSERT_GE(rows.size(), 30u);
  for (const nlohmann::json& row : rows) {
    const std::vector<Tags> predictions = row.at("predictions"), references = row.at("references");
    for (size_t i = 0; i < predictions.size(); ++i) {
      std::vector<Entity> expected;
      for (const nlohmann::json& each : row.at("entities").at(i))
        expected.push_back({each.at(0), each.at(1), each.at(2)});
      EXPECT_EQ(entities(predictions[i]), expected) << row;
    }
    const EntityScores ours = entity_scores(predictions, references);
    EXPECT_DOUBLE_EQ(ours.precision, row.at("scores").at(0).get<double>()) << row;
    EXPECT_DOUBLE_EQ(ours.recall, row.at("scores").at(1).get<double>()) << row;
    EXPECT_DOUBLE_EQ(ours.f1, row.at("scores").at(2).get<double>()) << row;
  }
}

TEST(Entities, CountWhatTheScoresAreMadeOf) {
  const EntityScores scores = entity_scores({{"B-PER", "I-PER", "O", "B-LOC"}}, {{"B-PER", "I-PER", "O", "O"}});
  EXPECT_EQ(scores.right, 1);
  EXPECT_EQ(scores.predicted, 2);
  EXPECT_EQ(scores.expected, 1);
}

TEST(Entities, DoNotReachIntoTheNextSentence) {
  EXPECT_EQ(entity_scores({{"B-PER"}, {"I-PER"}}, {{"B-PER"}, {"I-PER"}}).right, 2);
}

TEST(Entities, RefuseListsThatDoNotFit) {
  EXPECT_TRUE(refusal_of([] { entities({"O", ""}); }).says("tag 2 is empty"));
  EXPECT_TRUE(refusal_of([] { entity_scores({{"O"}}, {}); }).says("predictions for 1 sentences and references for 0"));
  EXPECT_TRUE(refusal_of([] {
                entity_scores({{"O"}, {"O"}}, {{"O"}, {"O", "O"}});
              }).says("sentence 2 has 1 predicted tags and 2"));
}

}  // namespace
}  // namespace mh
