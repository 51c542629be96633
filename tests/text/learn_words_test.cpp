// Tokenizers of words: which words there are, and that encoding cuts text as counting did.
#include "multihead/text/learn_words.h"

#include <gtest/gtest.h>

#include "tests/harness/refusal.h"

namespace mh {
namespace {

std::vector<std::string> tokens(const Tokenizer& tokenizer, const std::string& text) {
  std::vector<std::string> out;
  for (const int32_t id : tokenizer.encode(text)) out.push_back(tokenizer.token(id));
  return out;
}

using Words = std::vector<std::string>;

TEST(LearnWords, FrequentWordsComeFirstAndRareOnesAreUnknown) {
  const Tokenizer t = learn_words({"b a b", "A c", "a b d"}, {.min_count = 2});
  EXPECT_EQ(t.size(), 7);
  EXPECT_EQ(t.token(5), "a");  // as often as b
  EXPECT_EQ(t.token(6), "b");
  EXPECT_EQ(tokens(t, "B c a"), (Words{"b", "[UNK]", "a"}));
  EXPECT_EQ(learn_words({"a b d", "b a b", "A c"}).json(), t.json());
}

TEST(LearnWords, SignsStandAloneAndEncodingCutsAsCountingDid) {
  const std::string text = "Don't pay \u00A350, na\u00EFve_one!! \u4F60\u597D \u20AC$x";
  const Tokenizer t = learn_words({text}, {.min_count = 1});
  EXPECT_EQ(tokens(t, text), (Words{"don", "'", "t", "pay", "\u00A3", "50", ",", "na\u00EFve", "_", "one", "!", "!",
                                    "\u4F60\u597D", "\u20AC", "$", "x"}));
  for (const int32_t id : t.encode(text)) EXPECT_FALSE(t.is_special(id));
  const Tokenizer cased = learn_words({text}, {.min_count = 1, .lowercase = false});
  EXPECT_EQ(tokens(cased, "Don don").front(), "Don");
  EXPECT_EQ(tokens(cased, "Don don").back(), "[UNK]");
}

TEST(LearnWords, ANameOfASpecialTokenIsNoWord) {
  const Tokenizer t = learn_words({"<s> <s> a a"}, {.specials = {"<pad>", "<s>", "<unk>"}, .unknown = "<unk>"});
  EXPECT_EQ(tokens(t, "<s> a"), (Words{"<", "s", ">", "a"}));
  EXPECT_TRUE(refusal_of([] { learn_words({}, {.unknown = "<x>"}); }).says("the special tokens lack <x>"));
  EXPECT_TRUE(refusal_of([] { learn_words({}, {.min_count = 0}); }).says("min_count is 0"));
}

TEST(LearnWords, BytesThatAreNoTextCountAsTheReplacementCharacter) {
  const Tokenizer t = learn_words({"a \xFF a"}, {.min_count = 1});
  EXPECT_EQ(tokens(t, "\xFF"), (Words{"\uFFFD"}));
  EXPECT_TRUE(t.encode("").empty());
}

}  // namespace
}  // namespace mh
