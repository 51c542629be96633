// Accuracy, precision, recall, F1 and Matthews correlation: scikit-learn's figures.
#include "multihead/metrics/classification.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <vector>

#include "multihead/base/random.h"
#include "tests/harness/refusal.h"
#include "tests/metrics/golden.h"

namespace mh {
namespace {

using Labels = std::vector<int32_t>;

TEST(Classification, IsScikitLearns) {
  const nlohmann::json rows = golden_json("classification.json");
  ASSERT_GE(rows.size(), 14u);
  for (const nlohmann::json& row : rows) {
    const Labels predictions = row.at("predictions"), references = row.at("references");
    const ConfusionMatrix matrix = confusion_matrix(predictions, references, row.at("classes"));
    EXPECT_EQ(matrix.counts, row.at("matrix").get<std::vector<int64_t>>()) << row;
    EXPECT_DOUBLE_EQ(accuracy(predictions, references), row.at("accuracy").get<double>()) << row;
    const std::vector<ClassScore> scores = class_scores(matrix);
    ASSERT_EQ(scores.size(), row.at("f1").size());
    for (size_t k = 0; k < scores.size(); ++k) {
      EXPECT_DOUBLE_EQ(scores[k].precision, row.at("precision").at(k).get<double>()) << row;
      EXPECT_DOUBLE_EQ(scores[k].recall, row.at("recall").at(k).get<double>()) << row;
      EXPECT_DOUBLE_EQ(scores[k].f1, row.at("f1").at(k).get<double>()) << row;
    }
    EXPECT_DOUBLE_EQ(macro_f1(matrix), row.at("macro_f1").get<double>()) << row;
    EXPECT_DOUBLE_EQ(matthews_correlation(matrix), row.at("matthews").get<double>()) << row;
  }
}

TEST(Classification, RowsOfTheMatrixAreReferences) {
  const ConfusionMatrix matrix = confusion_matrix(Labels{1, 1, 0}, Labels{0, 0, 0}, 3);
  EXPECT_EQ(matrix.at(0, 1), 2);
  EXPECT_EQ(matrix.at(1, 0), 0);
  EXPECT_EQ(class_scores(matrix)[0].references, 3);
  EXPECT_EQ(class_scores(matrix)[1].predictions, 2);
}

TEST(Classification, AccuracyTakesAnyNumbers) { EXPECT_EQ(accuracy(Labels{-1, 50'000}, Labels{-1, 7}), 0.5); }

TEST(Classification, RefusesWhatHasNoScore) {
  EXPECT_TRUE(refusal_of([] { accuracy({}, {}); }).says("accuracy: no predictions"));
  EXPECT_TRUE(refusal_of([] { accuracy(Labels{1}, Labels{1, 2}); }).says("1 predictions and 2 references"));
  EXPECT_TRUE(refusal_of([] { confusion_matrix(Labels{1}, Labels{}, 2); }).says("1 predictions and 0 references"));
  EXPECT_TRUE(
      refusal_of([] { confusion_matrix(Labels{2}, Labels{1}, 2); }).says("predicted as 2; expected classes 0 to 1"));
  EXPECT_TRUE(refusal_of([] { confusion_matrix(Labels{0}, Labels{-1}, 2); }).says("of class -1"));
  EXPECT_TRUE(refusal_of([] { confusion_matrix(Labels{0}, Labels{0}, 0); }).says("0 classes"));
}

// scikit-learn's f1_score with average micro and macro, and accuracy_score, of these rows.
TEST(LabelSets, AreScoredLabelByLabel) {
  const std::vector<uint8_t> said{1, 0, 0, 1, 1, 0, 0, 0, 0}, right{1, 0, 0, 0, 1, 0, 0, 0, 1};
  const LabelSetScores s = label_set_scores(said, right, 3);
  EXPECT_DOUBLE_EQ(s.micro_f1, 2.0 / 3);
  EXPECT_DOUBLE_EQ(s.macro_f1, (2.0 / 3 + 1 + 0) / 3);
  EXPECT_DOUBLE_EQ(s.exact_match, 1.0 / 3);
}

TEST(LabelSets, ALabelThatNobodyHasCountsNothing) {
  const std::vector<uint8_t> none{0, 0, 0, 0}, one{1, 0, 1, 0};
  const LabelSetScores empty = label_set_scores(none, none, 2), half = label_set_scores(one, one, 2);
  EXPECT_EQ(empty.micro_f1, 0);
  EXPECT_EQ(empty.macro_f1, 0);
  EXPECT_EQ(empty.exact_match, 1);
  EXPECT_EQ(half.micro_f1, 1);
  EXPECT_EQ(half.macro_f1, 0.5);
}

// F1 from precision and recall, as it is defined.
TEST(LabelSets, EqualANaiveCount) {
  Random random(3);
  const int64_t items = 40, labels = 5;
  std::vector<uint8_t> said, right;
  for (int64_t n = 0; n < items * labels; ++n) {
    said.push_back(random.below(3) == 0);
    right.push_back(random.below(2) == 0);
  }
  double macro = 0;
  for (int64_t c = 0; c < labels; ++c) {
    double hit = 0, predicted = 0, wanted = 0;
    for (int64_t n = 0; n < items; ++n) {
      const auto at = static_cast<size_t>(n * labels + c);
      hit += said[at] == 1 && right[at] == 1;
      predicted += said[at];
      wanted += right[at];
    }
    const double precision = hit / predicted, recall = hit / wanted;
    macro += 2 * precision * recall / (precision + recall) / static_cast<double>(labels);
  }
  EXPECT_NEAR(label_set_scores(said, right, labels).macro_f1, macro, 1e-12);
}

TEST(LabelSets, ListsThatDoNotFitAreRefused) {
  const std::vector<uint8_t> three{0, 1, 0}, two{0, 1};
  EXPECT_TRUE(refusal_of([&] { label_set_scores(three, two, 1); }).says("3 predictions and 2 references"));
  EXPECT_TRUE(refusal_of([&] { label_set_scores(three, three, 2); }).says("expected whole items"));
  EXPECT_TRUE(refusal_of([&] { label_set_scores({}, {}, 2); }).says("0 predictions"));
}

}  // namespace
}  // namespace mh
