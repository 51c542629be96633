// Where sentences end, and where only a full stop stands.
#include "multihead/text/sentences.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>

namespace mh {
namespace {

// The sentences with bars between them, white space left out.
std::string cut(std::string_view text) {
  std::string out;
  for (const SentenceSpan& span : sentences(text)) out += (out.empty() ? "" : "|") + std::string(span.text);
  return out;
}

TEST(Sentences, EndWithTheirMarks) {
  EXPECT_EQ(cut("I am here. Where are you? Come!"), "I am here.|Where are you?|Come!");
  EXPECT_EQ(cut("how are you? i am fine."), "how are you?|i am fine.");
  EXPECT_EQ(cut("What?! No... wait."), "What?!|No... wait.");
  EXPECT_EQ(cut("Das ist gut. Über uns ist nichts. Ärgerlich!"), "Das ist gut.|Über uns ist nichts.|Ärgerlich!");
  EXPECT_EQ(cut("He was born in 1987. He lives here."), "He was born in 1987.|He lives here.");
  EXPECT_EQ(cut("It costs 3.50 dollars. See www.example.com now."), "It costs 3.50 dollars.|See www.example.com now.");
  EXPECT_EQ(cut("one"), "one");
}

TEST(Sentences, DoNotEndWithAnAbbreviation) {
  EXPECT_EQ(cut("Mr. Smith met Dr. Brown. They talked."), "Mr. Smith met Dr. Brown.|They talked.");
  EXPECT_EQ(cut("Mrs. Doe lives in St. Louis. Prof. J. R. Miller does not."),
            "Mrs. Doe lives in St. Louis.|Prof. J. R. Miller does not.");
  EXPECT_EQ(cut("Some fruit, e.g. Apples, i.e. Red ones. Good."), "Some fruit, e.g. Apples, i.e. Red ones.|Good.");
  EXPECT_EQ(cut("The U.S. Army came. It left."), "The U.S. Army came.|It left.");
  EXPECT_EQ(cut("Am 3. Mai war es z. B. Kalt. Dann nicht."), "Am 3. Mai war es z. B. Kalt.|Dann nicht.");
  EXPECT_EQ(cut("Come at 5 p.m. He will wait."), "Come at 5 p.m.|He will wait.");
  EXPECT_EQ(cut("So do I. He does not."), "So do I.|He does not.");
  EXPECT_EQ(cut("I saw (Dr. Who). Good."), "I saw (Dr. Who).|Good.");
}

TEST(Sentences, GoOnBehindAQuotation) {
  EXPECT_EQ(cut("\"Why?\" she asked. Nobody knew."), "\"Why?\" she asked.|Nobody knew.");
  EXPECT_EQ(cut("“Stop!” he cried. “Now!”"), "“Stop!” he cried.|“Now!”");
  EXPECT_EQ(cut("\"Why?\" She left."), "\"Why?\"|She left.");
}

TEST(Sentences, HaveALetterOrADigit) {
  EXPECT_EQ(cut("Really? ... ?! Yes."), "Really? ... ?!|Yes.");
  EXPECT_EQ(cut("... ?"), "... ?");
  EXPECT_EQ(cut("-. I"), "-. I");
}

TEST(Sentences, EndAtTheEndOfALine) {
  EXPECT_EQ(cut("Title\n\nThe text of Dr.\nIt ends"), "Title|The text of Dr.|It ends");
  EXPECT_EQ(cut("a\r\nb\rc"), "a|b|c");
}

TEST(Sentences, CoverTheTextWithItsWhiteSpace) {
  for (const std::string text : {" \t Hello there.  How are\tyou?\n\n\nFine, Mr. X.  \n", "x",
                                 "\u00a0A. \u2003B c. D?\u00a0", "日本。語！ ok"}) {
    std::string whole;
    for (const SentenceSpan& span : sentences(text)) {
      EXPECT_EQ(span.space.data() + span.space.size(), span.text.data());
      EXPECT_EQ(span.space.data(), text.data() + whole.size());
      whole += std::string(span.space) + std::string(span.text);
      EXPECT_EQ(cut(span.text).find('\n'), std::string::npos);
    }
    EXPECT_EQ(text.substr(0, whole.size()), whole);
    EXPECT_TRUE(sentences(std::string_view(text).substr(whole.size())).empty()) << text;
  }
  EXPECT_TRUE(sentences("").empty());
  EXPECT_TRUE(sentences(" \n\t\u00a0").empty());
  EXPECT_EQ(cut("日本。語！ ok"), "日本。|語！|ok");
}

TEST(Sentences, AreFoundOnEveryThread) {
  std::string out;
  std::thread([&] { out = cut("One. Two."); }).join();
  EXPECT_EQ(out, "One.|Two.");
}

}  // namespace
}  // namespace mh
