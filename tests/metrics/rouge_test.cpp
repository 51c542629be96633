// ROUGE: the figures of rouge-score; stems: those of NLTK.
#include "multihead/metrics/rouge.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "multihead/metrics/porter_stem.h"
#include "tests/harness/refusal.h"
#include "tests/metrics/golden.h"

namespace mh {
namespace {

void expect_rouge(const Rouge& ours, const nlohmann::json& theirs, const nlohmann::json& row) {
  const RougeScore scores[] = {ours.rouge1, ours.rouge2, ours.rouge_l, ours.rouge_lsum};
  for (size_t kind = 0; kind < 4; ++kind) {
    EXPECT_DOUBLE_EQ(scores[kind].precision, theirs.at(kind).at(0).get<double>()) << kind << row;
    EXPECT_DOUBLE_EQ(scores[kind].recall, theirs.at(kind).at(1).get<double>()) << kind << row;
    EXPECT_DOUBLE_EQ(scores[kind].f1, theirs.at(kind).at(2).get<double>()) << kind << row;
  }
}

TEST(Rouge, IsRougeScores) {
  const nlohmann::json rows = golden_json("rouge.json");
  ASSERT_GE(rows.size(), 50u);
  for (const nlohmann::json& row : rows) {
    const std::string prediction = row.at("prediction");
    const std::vector<std::string> targets = row.at("targets");
    expect_rouge(rouge(prediction, targets), row.at("words"), row);
    expect_rouge(rouge(prediction, targets, {.stem = true}), row.at("stems"), row);
  }
}

TEST(Rouge, StemsAreNltks) {
  const nlohmann::json rows = golden_json("stems.json");
  ASSERT_GE(rows.size(), 600u);
  for (const nlohmann::json& row : rows)
    EXPECT_EQ(detail::porter_stem(row.at(0).get<std::string>()), row.at(1).get<std::string>()) << row;
}

TEST(Rouge, RefusesToScoreAgainstNothing) {
  EXPECT_TRUE(refusal_of([] { rouge("a", {}); }).says("rouge: no target"));
}

}  // namespace
}  // namespace mh
