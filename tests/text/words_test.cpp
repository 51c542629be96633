// Where text is cut into words.
#include "multihead/text/words.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace mh::detail {
namespace {

using Words = std::vector<std::string>;

Words words(const std::string& text) {
  Words out;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = word_end(text, begin);
    if (end <= begin || end > text.size()) {
      ADD_FAILURE() << "a word from " << begin << " to " << end << " in a text of " << text.size();
      break;
    }
    out.push_back(text.substr(begin, end - begin));
    begin = end;
  }
  return out;
}

TEST(Words, LettersDigitsAndSignsPart) {
  EXPECT_EQ(words("Hello world"), (Words{"Hello", " world"}));
  EXPECT_EQ(words("abc123!?x"), (Words{"abc", "123", "!?", "x"}));
  EXPECT_EQ(words("a, b: 7%"), (Words{"a", ",", " b", ":", " 7", "%"}));
  EXPECT_EQ(words("Straße 你好 ٣Ⅷ½"), (Words{"Straße", " 你好", " ٣Ⅷ½"}));
}

TEST(Words, ContractionsAreWordsInLowerCaseOnly) {
  EXPECT_EQ(words("it's"), (Words{"it", "'s"}));
  EXPECT_EQ(words("we're I've he'll don't I'm she'd"),
            (Words{"we", "'re", " I", "'ve", " he", "'ll", " don", "'t", " I", "'m", " she", "'d"}));
  EXPECT_EQ(words("IT'S"), (Words{"IT", "'", "S"}));
  EXPECT_EQ(words("'s"), (Words{"'s"}));
  EXPECT_EQ(words("'"), (Words{"'"}));
  EXPECT_EQ(words("'r"), (Words{"'", "r"}));
  EXPECT_EQ(words("'tis"), (Words{"'t", "is"}));
  EXPECT_EQ(words(" 's"), (Words{" '", "s"}));  // a space and a sign come first
  EXPECT_EQ(words("!'s"), (Words{"!'", "s"}));  // so does a run of signs
}

TEST(Words, OfSeveralSpacesTheLastGoesWithTheWord) {
  EXPECT_EQ(words("a  b"), (Words{"a", " ", " b"}));
  EXPECT_EQ(words("a    b"), (Words{"a", "   ", " b"}));
  EXPECT_EQ(words("a  "), (Words{"a", "  "}));
  EXPECT_EQ(words(" "), (Words{" "}));
  EXPECT_EQ(words("a\tb"), (Words{"a", "\t", "b"}));
  EXPECT_EQ(words("a\n\nb"), (Words{"a", "\n", "\n", "b"}));
  EXPECT_EQ(words("a \n b"), (Words{"a", " \n", " b"}));
  EXPECT_EQ(words("a\u00a0b"), (Words{"a", "\u00a0", "b"}));
  EXPECT_EQ(words("a\u3000\u2003 b"), (Words{"a", "\u3000\u2003", " b"}));
  EXPECT_EQ(words("a\u0085 b"), (Words{"a", "\u0085", " b"}));
}

TEST(Words, MarksAndJoinersAreSigns) {
  EXPECT_EQ(words("e\u0301t"), (Words{"e", "\u0301", "t"}));
  EXPECT_EQ(words("a\u200bb"), (Words{"a", "\u200b", "b"}));
  EXPECT_EQ(words("👩‍👧!"), (Words{"👩‍👧!"}));
  EXPECT_EQ(words(std::string("a\0b", 3)), (Words{"a", std::string(1, '\0'), "b"}));
}

TEST(Words, BrokenBytesAreSigns) {
  EXPECT_EQ(words("a\xff\xfe"
                  "b"),
            (Words{"a", "\xff\xfe", "b"}));
  EXPECT_EQ(words(" \x80!"), (Words{" \x80!"}));
  EXPECT_EQ(words("x\xe2\x82y"), (Words{"x", "\xe2\x82", "y"}));
  EXPECT_EQ(words("\xf0\x9f"), (Words{"\xf0\x9f"}));
  EXPECT_EQ(words("\xed\xa0\x80"), (Words{"\xed\xa0\x80"}));
}

}  // namespace
}  // namespace mh::detail
