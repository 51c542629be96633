// What a text may begin with, where its lines end, and lines that are not UTF-8.
#include "multihead/text/text_lines.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/harness/refusal.h"

namespace mh {
namespace {

using namespace std::string_literals;

TEST(TextLines, AMarkOfUtf8IsSkippedOnce) {
  EXPECT_EQ(text_after_mark("\xEF\xBB\xBFone", "a"), "one");
  EXPECT_EQ(text_after_mark("\xEF\xBB\xBF\xEF\xBB\xBFone", "a"), "\xEF\xBB\xBFone");
  EXPECT_EQ(text_after_mark("\xEF\xBBone", "a"), "\xEF\xBBone");
  EXPECT_EQ(text_after_mark("", "a"), "");
}

TEST(TextLines, OtherEncodingsAreRefusedByName) {
  for (const std::string& start : {"\xFF\xFEo\0"s, "\xFE\xFF\0o"s, "\xFF\xFE\0\0"s, "\0\0\xFE\xFF"s}) {
    const Refusal refusal = refusal_of([&] { text_after_mark(start, "a.txt"); });
    EXPECT_EQ(refusal.kind, ErrorKind::unsupported);
    EXPECT_TRUE(refusal.says("a.txt: begins with the byte order mark of UTF-16 or UTF-32; expected UTF-8"));
  }
}

TEST(TextLines, LinesEndAsUnixOrWindowsEndsThem) {
  std::string_view text = "one\n\r\ntwo\r\nthr\ree\nlast";
  std::vector<std::string> lines;
  while (!text.empty()) lines.emplace_back(next_line(text));
  EXPECT_EQ(lines, (std::vector<std::string>{"one", "", "two", "thr\ree", "last"}));
}

TEST(TextLines, WhatIsNotUtf8IsSkippedAndCounted) {
  BrokenLines broken;
  EXPECT_FALSE(broken.skips("café naïve", 1));
  EXPECT_EQ(broken.sentence("a.txt", 1), "");
  EXPECT_TRUE(broken.skips("caf\xE9 na\xEFve", 2));  // Latin-1
  EXPECT_TRUE(broken.skips("cut in a character: \xC3", 4));
  EXPECT_EQ(broken.count(), 2);
  EXPECT_EQ(broken.first_line(), 2);
  EXPECT_EQ(broken.sentence("a.txt", 5),
            "a.txt: skipped 2 of 5 lines (the first is line 2): not UTF-8 at byte 4; a file in another encoding is "
            "converted by iconv -f WINDOWS-1252 -t UTF-8");
  EXPECT_EQ(skipped_sentence("a", 1, 3, 2, "why"), "a: skipped 1 of 3 lines (line 2): why");
}

}  // namespace
}  // namespace mh
