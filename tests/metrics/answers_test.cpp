// Exact match and F1 of answers: what the definition of SQuAD's scripts gives.
#include "multihead/metrics/answers.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/harness/refusal.h"
#include "tests/metrics/golden.h"

namespace mh {
namespace {

using Texts = std::vector<std::string>;

void expect_answer(const AnswerScores& ours, const nlohmann::json& theirs, const nlohmann::json& row) {
  EXPECT_EQ(ours.exact_match, theirs.at(0).get<double>()) << row;
  EXPECT_DOUBLE_EQ(ours.f1, theirs.at(1).get<double>()) << row;
}

TEST(Answers, AreScoredAsSquadsScriptsDo) {
  const nlohmann::json rows = golden_json("answers.json");
  ASSERT_GE(rows.size(), 100u);
  Texts predictions;
  std::vector<Texts> answers;
  double exact = 0, f1 = 0;
  for (const nlohmann::json& row : rows) {
    predictions.push_back(row.at("prediction"));
    answers.push_back(row.at("answers"));
    EXPECT_EQ(normalised_answer(predictions.back()), row.at("normalised").get<std::string>()) << row;
    expect_answer(answer_scores(predictions.back(), answers.back(), SquadVersion::v2), row.at("v2"), row);
    if (!answers.back().empty()) expect_answer(answer_scores(predictions.back(), answers.back()), row.at("v1_1"), row);
    exact += row.at("v2").at(0).get<double>();
    f1 += row.at("v2").at(1).get<double>();
  }
  const AnswerScores mean = answer_scores(predictions, answers, SquadVersion::v2);
  expect_same_sum(mean.exact_match, 100 * exact / static_cast<double>(rows.size()), "mean");
  expect_same_sum(mean.f1, 100 * f1 / static_cast<double>(rows.size()), "mean");
}

TEST(Answers, WithoutWordsScoreOnlyInTheSecondVersion) {
  EXPECT_EQ(answer_scores("the", Texts{"a"}, SquadVersion::v1_1).f1, 0);
  EXPECT_EQ(answer_scores("the", Texts{"a"}, SquadVersion::v1_1).exact_match, 1);
  EXPECT_EQ(answer_scores("the", Texts{"a"}, SquadVersion::v2).f1, 1);
  EXPECT_EQ(answer_scores("", Texts{}, SquadVersion::v2).exact_match, 1);
}

TEST(Answers, AreRefusedWhereNothingCanBeScored) {
  EXPECT_TRUE(refusal_of([] { answer_scores("a", Texts{}); }).says("a question without an answer"));
  EXPECT_TRUE(refusal_of([] { answer_scores(Texts{}, std::vector<Texts>{}); }).says("no questions"));
  EXPECT_TRUE(
      refusal_of([] { answer_scores(Texts{"a"}, std::vector<Texts>{}); }).says("1 predictions and answers for 0"));
}

}  // namespace
}  // namespace mh
