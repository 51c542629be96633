// Lengths and repetition, one row at a time.
#include "multihead/generate/rules.h"

#include <gtest/gtest.h>

#include <cmath>

namespace mh::detail {
namespace {

using Ids = std::vector<int32_t>;

const Ids kEndIds{2};

// The rules on one row, with so many of the text's tokens written by the model and the others before it.
std::vector<float> applied(const WritingRules& rules, const Ids& text, std::vector<float> logits, int64_t before = 0) {
  apply_rules(rules,
              {.text = text,
               .written = static_cast<int64_t>(text.size()) - before,
               .source = Ids{4, 5, 6},
               .limit = 5,
               .ends = kEndIds},
              logits);
  return logits;
}

// The tokens that the rules forbid, of a vocabulary of 8.
Ids forbidden(const WritingRules& rules, const Ids& text, int64_t before = 0) {
  const std::vector<float> logits = applied(rules, text, std::vector<float>(8, 0), before);
  Ids out;
  for (int32_t v = 0; v < 8; ++v)
    if (std::isinf(logits[static_cast<size_t>(v)])) out.push_back(v);
  return out;
}

TEST(Rules, NoneLookAtTheLogitsByDefault) {
  EXPECT_FALSE(changes_logits({}));
  EXPECT_TRUE(changes_logits({.min_length = 1}));
  EXPECT_TRUE(changes_logits({.repetition_penalty = 1.1F}));
  EXPECT_TRUE(changes_logits({.no_repeat_ngram = 3}));
  EXPECT_TRUE(changes_logits({.min_text = 1}));
  EXPECT_TRUE(changes_logits({.no_repeat_source_ngram = 1}));
  EXPECT_TRUE(changes_logits({.bad_words = {{1}}}));
  EXPECT_TRUE(changes_logits({.forced_begin = 0}));
  EXPECT_TRUE(changes_logits({.forced_ends = {1}}));
  EXPECT_TRUE(changes_logits({.suppressed = {1}}));
  EXPECT_TRUE(changes_logits({.begin_suppressed = {1}}));
  EXPECT_FALSE(changes_logits({.max_text = 3, .ends = {1, 2}}));
}

TEST(Rules, RepetitionWeakensEachWrittenTokenOnce) {
  const std::vector<float> logits{1, -1, 4, 3, -2};
  EXPECT_EQ(applied({.repetition_penalty = 2}, {3, 4, 3, 3}, logits), (std::vector<float>{1, -1, 4, 1.5F, -4}));
  EXPECT_EQ(applied({.repetition_penalty = 2}, {3, 4, 3, 3}, logits, 2), (std::vector<float>{1, -1, 4, 1.5F, -2}));
  EXPECT_EQ(applied({.repetition_penalty = 2, .whole_text = true}, {3, 4, 3, 3}, logits, 2),
            (std::vector<float>{1, -1, 4, 1.5F, -4}));
  EXPECT_EQ(applied({.repetition_penalty = 2}, {99}, logits), logits);
}

TEST(Rules, NoSequenceOfTokensIsFinishedTwice) {
  EXPECT_EQ(forbidden({.no_repeat_ngram = 1}, {5, 3, 5}), (Ids{3, 5}));
  EXPECT_EQ(forbidden({.no_repeat_ngram = 2}, {5, 3, 5}), (Ids{3}));
  EXPECT_EQ(forbidden({.no_repeat_ngram = 2}, {5, 5}), (Ids{5}));
  EXPECT_EQ(forbidden({.no_repeat_ngram = 3}, {4, 5, 6, 7, 4, 5}), (Ids{6}));
  EXPECT_EQ(forbidden({.no_repeat_ngram = 3}, {4, 5, 6, 4, 5, 7, 4, 5}), (Ids{6, 7}));
  EXPECT_EQ(forbidden({.no_repeat_ngram = 3}, {4, 5}), (Ids{}));
  EXPECT_EQ(forbidden({.no_repeat_ngram = 2}, {}), (Ids{}));
  EXPECT_EQ(forbidden({.no_repeat_ngram = 2}, {5, 3, 5}, 1), (Ids{}));
  EXPECT_EQ(forbidden({.no_repeat_ngram = 2, .whole_text = true}, {5, 3, 5}, 1), (Ids{3}));
}

TEST(Rules, NoSequenceOfTheSourceIsWritten) {
  EXPECT_EQ(forbidden({.no_repeat_source_ngram = 1}, {}), (Ids{4, 5, 6}));
  EXPECT_EQ(forbidden({.no_repeat_source_ngram = 2}, {7, 5}), (Ids{6}));
  EXPECT_EQ(forbidden({.no_repeat_source_ngram = 3}, {5}), (Ids{}));
}

TEST(Rules, BadWordsAreNotFinished) {
  const WritingRules rules{.bad_words = {{3}, {4, 5}, {6, 7, 1}, {2}, {2, 0}, {}, {99}}};
  EXPECT_EQ(forbidden(rules, {}), (Ids{3}));
  EXPECT_EQ(forbidden(rules, {4}), (Ids{3, 5}));
  EXPECT_EQ(forbidden(rules, {6, 7}), (Ids{1, 3}));
  EXPECT_EQ(forbidden(rules, {6, 2}), (Ids{0, 3}));
}

TEST(Rules, TheEndWaitsForTheShortestLength) {
  EXPECT_EQ(forbidden({.min_length = 2}, {3, 3}), (Ids{}));
  EXPECT_EQ(forbidden({.min_length = 3}, {3, 3}), kEndIds);
  EXPECT_EQ(forbidden({.min_length = 2}, {3, 3}, 1), kEndIds);
  EXPECT_EQ(forbidden({.min_text = 2}, {3, 3}, 1), (Ids{}));
  EXPECT_EQ(forbidden({.min_text = 3}, {3, 3}, 1), kEndIds);
}

TEST(Rules, ForcedTokensAreAllThatIsLeft) {
  EXPECT_EQ(forbidden({.forced_begin = 5}, {1}, 1), (Ids{0, 1, 2, 3, 4, 6, 7}));
  EXPECT_EQ(forbidden({.forced_begin = 5}, {1, 1}, 1), (Ids{}));
  EXPECT_EQ(forbidden({.forced_ends = {2, 4}}, {1, 1, 1, 1}), (Ids{0, 1, 3, 5, 6, 7}));
  EXPECT_EQ(forbidden({.forced_ends = {2, 4}}, {1, 1, 1}), (Ids{}));
  EXPECT_EQ(applied({.forced_begin = 1, .suppressed = {0}}, {1}, {5, -3, 4}, 1)[1], 0);
}

TEST(Rules, SuppressedTokensAreNeverWrittenOrNotAtFirst) {
  EXPECT_EQ(forbidden({.suppressed = {1, 99, -1}}, {3, 3}), (Ids{1}));
  EXPECT_EQ(forbidden({.begin_suppressed = {1}}, {3, 3}, 2), (Ids{1}));
  EXPECT_EQ(forbidden({.begin_suppressed = {1}}, {3, 3}, 1), (Ids{}));
  EXPECT_EQ(forbidden({.forced_begin = 6, .begin_suppressed = {1}}, {3, 6}, 1), (Ids{1}));
  EXPECT_EQ(forbidden({.forced_begin = 6, .begin_suppressed = {1}}, {3, 6}, 2), (Ids{1}));
}

TEST(Rules, TheSmallestLimitCounts) {
  EXPECT_EQ(length_limit({}, 10, 256), 32);
  EXPECT_EQ(length_limit({}, 200, 256), 256);
  EXPECT_EQ(length_limit({.max_length = 20}, 10, 256), 20);
  EXPECT_EQ(length_limit({.max_length = 500}, 200, 256), 256);
  EXPECT_EQ(length_limit({.length_factor = 1.5, .length_offset = 1}, 5, 256), 8);
  EXPECT_EQ(length_limit({.length_factor = 1e6, .length_offset = 1e6}, 250, 256), 256);
}

}  // namespace
}  // namespace mh::detail
