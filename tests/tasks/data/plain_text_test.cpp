// Texts for a language model: which lines are read, what is counted, and how their tokens are cut.
#include "multihead/tasks/data/plain_text.h"

#include <gtest/gtest.h>

#include "multihead/tasks/data/dataset.h"
#include "multihead/text/train_words.h"
#include "tests/harness/refusal.h"
#include "tests/harness/temporary_folder.h"

namespace mh {
namespace {

class PlainTexts : public testing::Test {
 protected:
  PlainText read(const std::string& text, TextLines lines = TextLines::sentences) const {
    put_text(folder_ / "a.txt", text);
    return PlainText(folder_ / "a.txt", lines);
  }
  // One token a byte, and none before a line.
  const Tokenizer bytes_ = train_bpe({}, {.vocabulary = 260, .prefix_space = false});
  TemporaryFolder folder_;
};

TEST_F(PlainTexts, SkipWhatIsBlankBrokenOrEndless) {
  const PlainText text = read(
      "\xEF\xBB\xBFone two\r\n\n  \t\nthr\xFF"
      "ee\n f\xC3\xBCr  vier\n" +
      std::string(static_cast<size_t>(kLongestLine) + 1, 'x') + "\nend");
  EXPECT_EQ(text.lines(), (std::vector<std::string_view>{"one two", " f\xC3\xBCr  vier", "end"}));
  EXPECT_EQ(text.words(), 5);
  EXPECT_EQ(text.bytes(), (7 + 1) + (11 + 1) + (3 + 1));
  ASSERT_EQ(text.report().size(), 2U);
  EXPECT_NE(text.report()[0].find("skipped 1 of 7 lines (line 4): not UTF-8 at byte 4"), std::string::npos);
  EXPECT_NE(text.report()[1].find("skipped 1 of 7 lines (line 6): more than 65536 bytes"), std::string::npos);
  EXPECT_TRUE(refusal_of([&] { read("\n \n"); }).says("a.txt: holds no text"));
  EXPECT_TRUE(refusal_of([&] { read("\xFF\n"); }).says("holds no text; "));
}

TEST_F(PlainTexts, KeepBlankLinesWhereTheyAreTakenAsTheyAre) {
  const PlainText text = read(
      "\n\none two\r\n\n  \t\nthr\xFF"
      "ee\nend",
      TextLines::text);
  EXPECT_EQ(text.lines(), (std::vector<std::string_view>{"", "", "one two", "", "  \t", "end"}));
  EXPECT_EQ(text.words(), 3);
  EXPECT_EQ(text.bytes(), 1 + 1 + (7 + 1) + 1 + (3 + 1) + (3 + 1));
  ASSERT_EQ(text.report().size(), 1U);
  EXPECT_TRUE(refusal_of([&] { read("\n \n", TextLines::text); }).says("a.txt: holds no text"));
}

TEST_F(PlainTexts, AShareOfTheBytesIsCountedInLinesFromTheEnd) {
  const PlainText text = read("abcdefghi\nabcd\n\nab\na\n", TextLines::text);  // 10, 5, 1, 3, 2 bytes: 21
  EXPECT_EQ(text.lines_of_share(0), 1);
  EXPECT_EQ(text.lines_of_share(2.0 / 21), 1);
  EXPECT_EQ(text.lines_of_share(2.1 / 21), 2);
  EXPECT_EQ(text.lines_of_share(0.5), 2);  // 11 bytes would need four lines, and half of five is two
  EXPECT_EQ(read("a\nb\nc\nd\nabcdefghi\n").lines_of_share(0.5), 1);
}

TEST_F(PlainTexts, ALinesBreakIsOneTokenOrRefused) {
  EXPECT_EQ(bytes_.decode(std::vector<int32_t>{line_break_of(bytes_)}), "\n");
  const Tokenizer characters = train_words({"a\n"}, {.unit = WordUnit::characters});
  EXPECT_EQ(line_break_of(characters), 4);  // behind four specials; of equals the one whose bytes come first
  const auto refused = [](const Tokenizer& tokenizer) {
    return refusal_of([&] { static_cast<void>(line_break_of(tokenizer)); }).sentence;
  };
  const std::string expected = "; expected one token for it alone";
  EXPECT_NE(refused(train_words({"a b"})).find("makes nothing of a line's break" + expected), std::string::npos);
  EXPECT_NE(refused(train_words({"ab"}, {.unit = WordUnit::characters}))
                .find("makes another token of a line's break" + expected),
            std::string::npos);
  EXPECT_NE(refused(train_bpe({}, {.vocabulary = 260})).find("makes 2 tokens of a line's break" + expected),
            std::string::npos);
}

TEST_F(PlainTexts, HoldOutTheLastLines) {
  PlainText text = read("a\nb\nc\nd\ne\n");
  EXPECT_TRUE(refusal_of([&] { text.hold_out(3); }).says("3 lines are to be held out; expected 1 to half of the 5"));
  EXPECT_THROW(text.hold_out(0), Error);
  const PlainText held = text.hold_out(2);
  EXPECT_EQ(text.lines(), (std::vector<std::string_view>{"a", "b", "c"}));
  EXPECT_EQ(held.lines(), (std::vector<std::string_view>{"d", "e"}));
}

// Windows as text, "|" for the end of a line.
std::vector<std::string> shown(const TextWindows& windows, const Tokenizer& tokenizer) {
  std::vector<std::string> out;
  for (int64_t n = 0; n < windows.size(); ++n) {
    out.emplace_back();
    for (const int32_t id : windows[n]) out.back() += id == 2 ? "|" : tokenizer.decode(std::vector<int32_t>{id});
  }
  return out;
}

TEST_F(PlainTexts, AreCutIntoWindowsThatHoldEveryTokenOnce) {
  using Windows = std::vector<std::string>;
  const PlainText text = read("abcdefg\nhi\nj\n");
  const auto cut = [&](int64_t longest, bool packed) {
    return shown(TextWindows(text, bytes_, {.longest = longest, .packed = packed}), bytes_);
  };
  EXPECT_EQ(cut(4, true), (Windows{"abcd", "efg|", "hi|j", "|"}));
  EXPECT_EQ(cut(4, false), (Windows{"abcd", "efg|", "hi|", "j|"}));
  EXPECT_EQ(cut(5, false), (Windows{"abcde", "fg|", "hi|", "j|"}));
  EXPECT_EQ(cut(100, true), (Windows{"abcdefg|hi|j|"}));
  EXPECT_EQ(TextWindows(text, bytes_, {.longest = 4}).tokens(), 13);
  EXPECT_NE(TextWindows(text, bytes_, {.longest = 4}).digest(), TextWindows(text, bytes_, {.longest = 5}).digest());
}

// "KNOWN>WINDOW" of windows that overlap.
TEST_F(PlainTexts, WindowsThatOverlapHoldEveryTokenAsANewOneOnce) {
  using Windows = std::vector<std::string>;
  const PlainText text = read("abcdefg\nhi\nj\n");
  const auto cut = [&](int64_t longest, int64_t stride, bool packed = true) {
    const TextWindows windows(text, bytes_, {.longest = longest, .packed = packed, .stride = stride});
    Windows out = shown(windows, bytes_);
    for (size_t n = 0; n < out.size(); ++n)
      out[n] = std::to_string(windows.known(static_cast<int64_t>(n))) + ">" + out[n];
    return out;
  };
  EXPECT_EQ(cut(6, 3), (Windows{"0>abcdef", "3>defg|h", "3>g|hi|j", "3>i|j|"}));
  EXPECT_EQ(cut(6, 4), (Windows{"0>abcdef", "2>efg|hi", "2>hi|j|"}));
  EXPECT_EQ(cut(6, 6), cut(6, 0));
  EXPECT_EQ(cut(4, 1, false), (Windows{"0>abcd", "3>bcde", "3>cdef", "3>defg", "3>efg|", "0>hi|", "0>j|"}));
  EXPECT_EQ(cut(100, 1), (Windows{"0>abcdefg|hi|j|"}));
  EXPECT_TRUE(refusal_of([&] { cut(4, 5); }).says("a stride of 5 with windows of 4 tokens; expected 0 to that"));
  EXPECT_THROW(cut(4, -1), Error);
}

TEST_F(PlainTexts, AreTheSameWindowsOverManyTasks) {
  std::string lines;
  for (int n = 0; n < 3000; ++n) lines += "line " + std::to_string(n) + "\n";
  const PlainText text = read(lines);
  const TextWindows windows(text, bytes_, {.longest = 64, .packed = false});
  ASSERT_EQ(windows.size(), 3000);
  std::string all;
  for (const std::string& each : shown(windows, bytes_)) all += each;
  for (char& c : all) c = c == '|' ? '\n' : c;
  EXPECT_EQ(all, lines);
}

}  // namespace
}  // namespace mh
