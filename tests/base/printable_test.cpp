// Text from elsewhere in a sentence: whole characters, nothing that breaks the line.
#include "multihead/base/printable.h"

#include <gtest/gtest.h>

namespace mh {
namespace {

std::string text(const Printable& printable) { return fmt::format("{}", printable); }

TEST(Printable, LeavesTextAsItIs) {
  EXPECT_EQ(text(printable("")), "''");
  EXPECT_EQ(text(printable("Größe 你好 👍 a b")), "'Größe 你好 👍 a b'");
}

TEST(Printable, SpellsControlCharactersAndBrokenText) {
  EXPECT_EQ(text(printable("a\n\x1b[0m\x7f")), "'a\\x0a\\x1b[0m\\x7f'");
  EXPECT_EQ(text(printable("\xc2\x9b")), "'\\xc2\\x9b'");                    // a control character of two bytes
  EXPECT_EQ(text(printable("\xff\xc3")), "'\\xff\\xc3'");                    // no character, half of one
  EXPECT_EQ(text(printable("\xc0\x8a")), "'\\xc0\\x8a'");                    // a line break in disguise
  EXPECT_EQ(text(printable("\xed\xa0\x80")), "'\\xed\\xa0\\x80'");           // a surrogate
  EXPECT_EQ(text(printable("\xf5\x80\x80\x80")), "'\\xf5\\x80\\x80\\x80'");  // past the last character
}

TEST(Printable, CutsNamesBetweenCharactersAndPathsNever) {
  EXPECT_EQ(text(printable(std::string(80, 'x'))), "'" + std::string(80, 'x') + "'");
  EXPECT_EQ(text(printable(std::string(81, 'x'))), "'" + std::string(80, 'x') + "…'");
  EXPECT_EQ(text(printable(std::string(79, 'x') + "ß")), "'" + std::string(79, 'x') + "…'");
  EXPECT_EQ(text(printable_path(std::string(500, 'x'))), "'" + std::string(500, 'x') + "'");
}

}  // namespace
}  // namespace mh
