// Text token by token: characters come whole, and all pieces together are the text.
#include "multihead/generate/text/text_stream.h"

#include <gtest/gtest.h>

#include "multihead/text/unicode/utf8.h"

namespace mh::detail {
namespace {

// A few merges, so that most characters outside ASCII are two or more tokens.
Tokenizer few_merges() { return train_bpe({"the cat sat on the mat"}, {.vocabulary = 270}); }

std::string streamed(const Tokenizer& tokenizer, const std::vector<int32_t>& prompt, const std::vector<int32_t>& ids,
                     std::vector<std::string>* pieces = nullptr) {
  TextStream stream(tokenizer, prompt);
  std::string out;
  for (const int32_t id : ids) {
    const std::string piece = stream.add(id);
    EXPECT_FALSE(utf8_error(piece)) << piece;
    if (pieces != nullptr) pieces->push_back(piece);
    out += piece;
  }
  return out + stream.rest();
}

TEST(TextStream, PiecesTogetherAreTheText) {
  const Tokenizer tokenizer = few_merges();
  for (const std::string text : {"the cat", "a  b\nc ", "Grüße, 世界! 👍🏽 ok", " ", ""}) {
    const std::vector<int32_t> ids = tokenizer.encode(text);
    EXPECT_EQ(streamed(tokenizer, {}, ids), text);
    for (size_t cut = 0; cut <= ids.size(); ++cut) {
      const std::vector<int32_t> prompt(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(cut));
      if (utf8_error(tokenizer.decode(prompt))) continue;
      const std::vector<int32_t> rest(ids.begin() + static_cast<std::ptrdiff_t>(cut), ids.end());
      EXPECT_EQ(tokenizer.decode(prompt) + streamed(tokenizer, prompt, rest), text) << cut;
    }
  }
}

TEST(TextStream, ACharacterWaitsForItsLastByte) {
  const Tokenizer tokenizer = few_merges();
  const std::vector<int32_t> ids = tokenizer.encode("世");  // a space and three bytes
  ASSERT_EQ(ids.size(), 4U);
  std::vector<std::string> pieces;
  EXPECT_EQ(streamed(tokenizer, {}, ids, &pieces), "世");
  EXPECT_EQ(pieces, (std::vector<std::string>{"", "", "", "世"}));
}

TEST(TextStream, WhatNeverBecomesACharacterIsLeftOut) {
  const Tokenizer tokenizer = few_merges();
  std::vector<int32_t> ids = tokenizer.encode("a世");
  ids.pop_back();
  EXPECT_EQ(streamed(tokenizer, {}, ids), "a");
  const std::vector<int32_t> more = tokenizer.encode(" cat");
  ids.insert(ids.end(), more.begin(), more.end());
  EXPECT_TRUE(streamed(tokenizer, {}, ids).ends_with(" cat"));
}

TEST(TextStream, SpecialTokensAddNothing) {
  const Tokenizer tokenizer = few_merges();
  const std::vector<int32_t> cat = tokenizer.encode("cat");
  std::vector<int32_t> ids{1};
  ids.insert(ids.end(), cat.begin(), cat.end());
  ids.push_back(2);
  EXPECT_EQ(streamed(tokenizer, {}, ids), "cat");
}

}  // namespace
}  // namespace mh::detail
