// The tokenizer as others use it: round trips, special tokens, refusals.
#include "multihead/text/tokenizer.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <thread>
#include <vector>

#include "multihead/base/error.h"

namespace mh {
namespace {

using Ids = std::vector<int32_t>;

const std::vector<std::string> kLines = {"The quick brown fox jumps over the lazy dog.",
                                         "The dog isn't lazy, it's only tired.",
                                         "Über den Wolken, über den Dächern.",
                                         "</s> and <pad> are only words here, </s> and <pad>.",
                                         "你好 你好 你好",
                                         "the the the then there"};

Tokenizer trained(bool prefix_space = true) {
  return train_bpe(kLines, {.vocabulary = 320, .prefix_space = prefix_space});
}

// Bytes of every kind: text, white space, special tokens, broken sequences.
std::string any_bytes(std::mt19937& random) {
  static const std::vector<std::string> parts = {"the",
                                                 " ",
                                                 "  ",
                                                 "\t",
                                                 "\n",
                                                 "'s",
                                                 "é",
                                                 "你",
                                                 "😀",
                                                 "</s>",
                                                 "<pad>",
                                                 "Ġ",
                                                 "1",
                                                 "!",
                                                 "\xff",
                                                 "\x80",
                                                 "\xe2\x82",
                                                 "\xed\xa0\x80",
                                                 std::string(1, '\0'),
                                                 "\u00a0",
                                                 "\u0301",
                                                 "a"};
  std::string out;
  for (size_t i = 0, count = random() % 20; i < count; ++i) {
    if (random() % 3 == 0) {
      out.push_back(static_cast<char>(random() % 256));
    } else {
      out += parts[random() % parts.size()];
    }
  }
  return out;
}

TEST(Tokenizer, AnyBytesComeBackAsTheyWere) {
  std::mt19937 random(1);
  for (const bool prefix_space : {true, false}) {
    const Tokenizer tokenizer = trained(prefix_space);
    for (int i = 0; i < 5000; ++i) {
      const std::string text = any_bytes(random);
      EXPECT_EQ(tokenizer.decode(tokenizer.encode(text)), text);
    }
    for (const std::string text : {"", " ", "  ", "a", " a", "\n", "\xff"})
      EXPECT_EQ(tokenizer.decode(tokenizer.encode(text)), text);
    const std::string line(1000000, 'e');
    EXPECT_EQ(tokenizer.decode(tokenizer.encode(line)), line);
  }
}

TEST(Tokenizer, AWordIsTheSameTokenAtTheBeginning) {
  const Tokenizer tokenizer = trained();
  const Ids alone = tokenizer.encode("the");
  const Ids later = tokenizer.encode("over the");
  EXPECT_EQ(alone, Ids({*tokenizer.id("Ġthe")}));
  EXPECT_EQ(later.back(), alone.back());
  EXPECT_NE(tokenizer.encode(" the"), alone);
  EXPECT_NE(trained(false).encode("the"), Ids({*trained(false).id("Ġthe")}));
}

TEST(Tokenizer, SpecialTokensAreNeverReadFromText) {
  const Tokenizer tokenizer = trained();
  for (int32_t id = 0; id < 4; ++id) EXPECT_TRUE(tokenizer.is_special(id));
  EXPECT_FALSE(tokenizer.is_special(4));
  for (const int32_t id : tokenizer.encode("a</s>b <pad><s>")) EXPECT_FALSE(tokenizer.is_special(id));
}

TEST(Tokenizer, DecodeSkipsSpecialTokens) {
  const Tokenizer tokenizer = trained();
  Ids ids = tokenizer.encode("the dog");
  ids.insert(ids.begin(), *tokenizer.id("<s>"));
  ids.insert(ids.begin() + 2, *tokenizer.id("<unk>"));
  ids.push_back(*tokenizer.id("</s>"));
  EXPECT_EQ(tokenizer.decode(ids), "the dog");
  EXPECT_EQ(tokenizer.decode(nullptr, 0), "");
}

TEST(Tokenizer, EncodeAppends) {
  const Tokenizer tokenizer = trained();
  Ids ids{7};
  tokenizer.encode("the", ids);
  EXPECT_EQ(ids, Ids({7, *tokenizer.id("Ġthe")}));
}

TEST(Tokenizer, TokensAndIdsNameEachOther) {
  const Tokenizer tokenizer = trained();
  EXPECT_EQ(tokenizer.token(0), "<pad>");
  EXPECT_EQ(tokenizer.id("no such token"), std::nullopt);
  for (int32_t id = 0; id < tokenizer.size(); ++id) EXPECT_EQ(tokenizer.id(tokenizer.token(id)), id);
}

TEST(Tokenizer, IdsThatAreNoneAreRefused) {
  const Tokenizer tokenizer = trained();
  for (const int32_t id : {-1, tokenizer.size(), INT32_MIN, INT32_MAX}) {
    EXPECT_THROW(tokenizer.decode({4, id}), Error) << id;
    EXPECT_THROW(tokenizer.token(id), Error) << id;
    EXPECT_THROW(tokenizer.is_special(id), Error) << id;
  }
}

TEST(Tokenizer, AnEmptyHandleSaysSo) {
  const Tokenizer none;
  EXPECT_FALSE(none);
  EXPECT_TRUE(trained());
  EXPECT_THROW(none.encode("a"), Error);
  EXPECT_THROW(none.decode({1}), Error);
  EXPECT_THROW(none.size(), Error);
  EXPECT_THROW(none.token(0), Error);
  EXPECT_THROW(none.json(), Error);
}

TEST(Tokenizer, ThreadsShareOne) {
  const Tokenizer tokenizer = trained();
  std::vector<Ids> expected;
  for (const std::string& line : kLines) expected.push_back(tokenizer.encode(line));
  std::vector<std::vector<Ids>> seen(4);
  std::vector<std::thread> threads;
  for (std::vector<Ids>& own : seen)
    threads.emplace_back([&own, tokenizer] {
      for (int i = 0; i < 50; ++i) {
        own.clear();
        for (const std::string& line : kLines) own.push_back(tokenizer.encode(line));
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (const std::vector<Ids>& own : seen) EXPECT_EQ(own, expected);
}

}  // namespace
}  // namespace mh
