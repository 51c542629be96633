// Which score a line is judged by.
#include "cli/verbs/translation_view.h"

#include <gtest/gtest.h>

namespace mh::cli {
namespace {

TranslatedSentence sentence_of(std::vector<float> scores) {
  TranslatedSentence out;
  out.token_scores = std::move(scores);
  return out;
}

TEST(TranslationView, ALineIsJudgedByItsWorstSentence) {
  Translation line;
  line.candidates.resize(2);
  line.candidates[0].sentences = {sentence_of({-0.5F, -0.25F, 0}), sentence_of({-1, -3}), sentence_of({-1.5F})};
  line.candidates[1].sentences = {sentence_of({-9})};
  EXPECT_DOUBLE_EQ(lowest_mean(line).value(), -2);
  line.candidates[0].sentences = {sentence_of({-0.5F, -0.25F, 0})};
  EXPECT_DOUBLE_EQ(lowest_mean(line).value(), -0.25);
  line.candidates[0].sentences.clear();
  EXPECT_FALSE(lowest_mean(line).has_value());
}

}  // namespace
}  // namespace mh::cli
