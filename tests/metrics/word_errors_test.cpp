// The word error rate: jiwer's figures.
#include "multihead/metrics/word_errors.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/harness/refusal.h"
#include "tests/metrics/golden.h"

namespace mh {
namespace {

TEST(WordErrorRate, IsJiwers) {
  const nlohmann::json rows = golden_json("word_errors.json");
  ASSERT_GE(rows.size(), 10u);
  for (const nlohmann::json& row : rows)
    EXPECT_DOUBLE_EQ(word_errors(row.at("hypotheses"), row.at("references")).rate, row.at("rate").get<double>()) << row;
}

TEST(WordErrorRate, SplitsAtAnyWhiteSpace) {
  const WordErrors scores = word_errors({"one\u00a0two\n three "}, {"one two three four"});
  EXPECT_EQ(scores.errors, 1);
  EXPECT_EQ(scores.words, 4);
  EXPECT_EQ(scores.rate, 0.25);
}

TEST(WordErrorRate, RefusesWhatHasNoRate) {
  EXPECT_TRUE(refusal_of([] { word_errors({"one"}, {}); }).says("1 hypotheses and 0 references"));
  EXPECT_TRUE(refusal_of([] { word_errors({"one"}, {" "}); }).says("no words in 1 references"));
}

}  // namespace
}  // namespace mh
