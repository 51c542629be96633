// Labels: their order, their numbers, and what an unknown one is told.
#include "multihead/tasks/data/labels.h"

#include <gtest/gtest.h>

#include "tests/harness/refusal.h"

namespace mh {
namespace {

TEST(LabelsOfATask, AreSortedAndNumberedFromZero) {
  const Labels labels({"b", "a", "b", "10", "9"});
  EXPECT_EQ(labels.names(), (std::vector<std::string>{"10", "9", "a", "b"}));
  for (int64_t n = 0; n < labels.size(); ++n) EXPECT_EQ(labels.number(labels.name(n)), n);
  EXPECT_FALSE(labels.number("c").has_value());
}

TEST(LabelsOfATask, OneThatWasNotSeenIsRefusedWithItsPlace) {
  const Labels labels({"positive", "negative"});
  EXPECT_EQ(refusal_of([&] { labels.require("positiv", "v.tsv:7"); }).sentence,
            "v.tsv:7: the label 'positiv' does not occur in the training data; did you mean 'positive'?");
  EXPECT_EQ(
      refusal_of([&] { labels.require("3", "v.tsv:7"); }).sentence,
      "v.tsv:7: the label '3' does not occur in the training data; expected one of its 2: 'negative', 'positive'");
}

}  // namespace
}  // namespace mh
