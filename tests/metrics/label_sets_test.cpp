// Scores of sets of labels: counted by hand, and against a naive count over random sets.
#include "multihead/metrics/label_sets.h"

#include <gtest/gtest.h>

#include <vector>

#include "multihead/base/random.h"
#include "tests/harness/refusal.h"

namespace mh {
namespace {

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
