// Training: the merges that are learned, against counting everything anew.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "multihead/base/error.h"
#include "multihead/text/tokenizer.h"

namespace mh {
namespace {

using Texts = std::vector<std::string>;

// The tokens beyond specials and bytes, in the order they were learned.
Texts learned(const Tokenizer& tokenizer, int32_t specials) {
  Texts out;
  for (int32_t id = specials + 256; id < tokenizer.size(); ++id) out.push_back(tokenizer.token(id));
  return out;
}

// Counts every pair anew before each merge; `words` are letters, each word a line.
Texts by_definition(const Texts& words, size_t count, int64_t least) {
  std::vector<Texts> cut;
  for (const std::string& word : words) {
    cut.emplace_back();
    for (const char c : word) cut.back().push_back(std::string(1, c));
  }
  std::map<std::string, size_t> ids;  // letters in their order, then tokens as they come
  for (char c = 'a'; c <= 'z'; ++c) ids.emplace(std::string(1, c), ids.size());
  Texts out;
  while (out.size() < count) {
    std::map<std::pair<size_t, size_t>, int64_t> seen;
    std::map<size_t, std::string> names;
    for (const auto& [name, id] : ids) names[id] = name;
    for (const Texts& word : cut)
      for (size_t i = 0; i + 1 < word.size(); ++i) ++seen[{ids.at(word[i]), ids.at(word[i + 1])}];
    const auto best = std::max_element(seen.begin(), seen.end(), [](const auto& a, const auto& b) {
      return a.second != b.second ? a.second < b.second : a.first > b.first;
    });
    if (best == seen.end() || best->second < least) break;
    const std::string left = names[best->first.first], right = names[best->first.second];
    if (ids.emplace(left + right, ids.size()).second) out.push_back(left + right);
    for (Texts& word : cut)
      for (size_t i = 0; i + 1 < word.size(); ++i)
        if (word[i] == left && word[i + 1] == right) {
          word[i] += right;
          word.erase(word.begin() + static_cast<std::ptrdiff_t>(i) + 1);
        }
  }
  return out;
}

TEST(TrainBpe, LearnsWhatCountingAnewLearns) {
  std::mt19937 random(1);
  for (int round = 0; round < 60; ++round) {
    Texts words;
    const size_t letters = 1 + random() % 4;
    for (size_t i = 0, count = 1 + random() % 40; i < count; ++i) {
      words.emplace_back();
      for (size_t k = 0, length = 1 + random() % 12; k < length; ++k)
        words.back().push_back(static_cast<char>('a' + random() % letters));
    }
    const int64_t least = 1 + static_cast<int64_t>(random() % 3);
    const Tokenizer tokenizer =
        train_bpe(words, {.vocabulary = 256 + 40, .specials = {}, .prefix_space = false, .min_frequency = least});
    EXPECT_EQ(learned(tokenizer, 0), by_definition(words, 40, least));
  }
}

TEST(TrainBpe, SpecialsComeFirstThenBytes) {
  const Tokenizer tokenizer = train_bpe({"ab ab"}, {.vocabulary = 300, .specials = {"<a>", "<b>"}});
  EXPECT_EQ(tokenizer.id("<a>"), 0);
  EXPECT_EQ(tokenizer.id("<b>"), 1);
  EXPECT_EQ(tokenizer.id("!"), 2);
  EXPECT_EQ(learned(tokenizer, 2), (Texts{"ab", "Ġab"}));  // no pair is left: smaller than asked
}

TEST(TrainBpe, PairsSeenTooSeldomAreNotMerged) {
  const Texts lines = {"ab ab ab", "cd cd"};
  const BpeOptions options{.vocabulary = 300, .specials = {}, .prefix_space = false, .min_frequency = 3};
  EXPECT_EQ(learned(train_bpe(lines, options), 0), (Texts{"ab"}));
}

TEST(TrainBpe, TheOrderOfLinesDoesNotMatter) {
  Texts lines;
  std::mt19937 random(1);
  for (int i = 0; i < 500; ++i) {
    lines.emplace_back();
    for (int k = 0; k < 30; ++k) lines.back().push_back("abcde  "[random() % 7]);
  }
  const std::string before = train_bpe(lines, {.vocabulary = 500}).json();
  std::shuffle(lines.begin(), lines.end(), random);
  EXPECT_EQ(train_bpe(lines, {.vocabulary = 500}).json(), before);
}

TEST(TrainBpe, NoMergeSpellsASpecialToken) {
  const Texts lines(50, "<<>> <<>> <<>>");
  const Tokenizer tokenizer = train_bpe(lines, {.vocabulary = 300, .specials = {"<<>>", "<<"}});
  EXPECT_EQ(tokenizer.decode(tokenizer.encode("<<>>")), "<<>>");
  for (const int32_t id : tokenizer.encode("<<>> <<")) EXPECT_FALSE(tokenizer.is_special(id));
  EXPECT_TRUE(tokenizer.id("<<>"));  // what else there is to learn is learned
}

TEST(TrainBpe, WithoutTextThereAreBytesAlone) {
  const Texts none[] = {{}, {"", ""}, {"a"}};
  for (const Texts& lines : none) {
    const Tokenizer tokenizer = train_bpe(lines, {.prefix_space = false});
    EXPECT_EQ(tokenizer.size(), 260);
    EXPECT_EQ(tokenizer.decode(tokenizer.encode("any text")), "any text");
  }
}

TEST(TrainBpe, ProgressCountsTokens) {
  std::vector<int64_t> seen;
  BpeOptions options{.vocabulary = 265, .specials = {}};
  options.progress = [&](int64_t done, int64_t total) {
    EXPECT_EQ(total, 9);
    seen.push_back(done);
  };
  train_bpe({"abcdefgh abcdefgh"}, options);
  ASSERT_EQ(seen.size(), 8u);  // one merge fewer than there are letters and the space
  EXPECT_TRUE(std::is_sorted(seen.begin(), seen.end()));
  EXPECT_EQ(seen.back(), 8);
}

TEST(TrainBpe, WhatCannotBeIsRefused) {
  const Texts lines = {"text"};
  EXPECT_THROW(train_bpe(lines, {.vocabulary = 259}), Error);
  EXPECT_NO_THROW(train_bpe(lines, {.vocabulary = 260}));
  EXPECT_THROW(train_bpe(lines, {.vocabulary = -1}), Error);
  EXPECT_THROW(train_bpe(lines, {.specials = {"<s>", "<s>"}}), Error);
  EXPECT_THROW(train_bpe(lines, {.specials = {""}}), Error);
  EXPECT_THROW(train_bpe(lines, {.specials = {"\xff"}}), Error);
  EXPECT_THROW(train_bpe(lines, {.specials = {"a"}}), Error);
  EXPECT_THROW(train_bpe(lines, {.specials = {"Ġ"}}), Error);
  EXPECT_THROW(train_bpe(lines, {.min_frequency = 0}), Error);
}

}  // namespace
}  // namespace mh
