// Windows over long contexts, and where an answer's rows are in each.
#include "multihead/tasks/data/question_windows.h"

#include <gtest/gtest.h>

#include "multihead/text/learn_words.h"
#include "tests/harness/refusal.h"

namespace mh {
namespace {

class QuestionWindowsTest : public testing::Test {
 protected:
  const std::string context_ = "ada sings in rome , kurt paints in graz .";
  const Tokenizer tokenizer_ = learn_words({context_, "who paints ?"}, {.min_count = 1, .wraps = true});
  std::vector<Encoded> windows(const WindowSizes& sizes) const {
    return question_windows(tokenizer_, "who paints ?", context_, sizes, "file: question 1");
  }
};

// [CLS] who paints ? [SEP] … [SEP]: 6 tokens beside the context's 10.
TEST_F(QuestionWindowsTest, TogetherHaveTheWholeContextWithTheStrideInCommon) {
  ASSERT_EQ(windows({.max_length = 16, .stride = 3}).size(), 1U);
  const std::vector<Encoded> cut = windows({.max_length = 12, .stride = 2});
  ASSERT_EQ(cut.size(), 2U);
  EXPECT_EQ(context_.substr(cut[0].offsets[5].begin, cut[0].offsets[10].end - cut[0].offsets[5].begin),
            "ada sings in rome , kurt");
  EXPECT_EQ(context_.substr(cut[1].offsets[5].begin), ", kurt paints in graz .");
}

TEST_F(QuestionWindowsTest, AnAnswerHasItsRowsWhereItIsWholeElseRowZero) {
  const auto span = [&](const std::string& text) {
    const size_t at = context_.find(text);
    return ContextSpan{at, at + text.size()};
  };
  const std::vector<Encoded> cut = windows({.max_length = 12, .stride = 2});
  EXPECT_EQ(answer_rows(cut[0], span("ada")), (WindowSpan{5, 5}));
  EXPECT_EQ(answer_rows(cut[1], span("ada")), (WindowSpan{}));
  EXPECT_EQ(answer_rows(cut[0], span("rome , kurt")), (WindowSpan{8, 10}));
  EXPECT_EQ(answer_rows(cut[1], span("rome , kurt")), (WindowSpan{}));  // only its end
  EXPECT_EQ(answer_rows(cut[0], span("kurt paints")), (WindowSpan{}));  // only its beginning
  EXPECT_EQ(answer_rows(cut[1], span("kurt paints")), (WindowSpan{6, 7}));
  EXPECT_EQ(answer_rows(cut[0], span(", kurt")), (WindowSpan{9, 10}));  // in both
  EXPECT_EQ(answer_rows(cut[1], span(", kurt")), (WindowSpan{5, 6}));
  EXPECT_EQ(answer_rows(cut[0], span("ing")), (WindowSpan{6, 6}));  // a part of a word has the word's row
  EXPECT_EQ(answer_rows(cut[0], {}), (WindowSpan{}));
}

TEST_F(QuestionWindowsTest, AQuestionThatLeavesNoPlaceIsRefused) {
  EXPECT_EQ(refusal_of([&] { windows({.max_length = 6}); }).sentence,
            "file: question 1 has 6 tokens; expected fewer than 6, so that some of the text fits");
  EXPECT_TRUE(refusal_of([&] {
                question_windows(tokenizer_, "\xFF", "a", {}, "file: question 2");
              }).says("file: question 2 or its text is not UTF-8"));
}

}  // namespace
}  // namespace mh
