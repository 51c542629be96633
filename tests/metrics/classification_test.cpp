// Accuracy, precision, recall, F1 and Matthews correlation: scikit-learn's figures.
#include "multihead/metrics/classification.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <vector>

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

}  // namespace
}  // namespace mh
