// Test sets: references in columns and on lines of their own, and files that are none.
#include "cli/reference_file.h"

#include <gtest/gtest.h>

#include "tests/harness/refusal.h"
#include "tests/harness/temporary_folder.h"

namespace mh::cli {
namespace {

using Texts = std::vector<std::string>;

class ReferenceFileTest : public testing::Test {
 protected:
  std::string file(const std::string& text) {
    put_text(folder_ / "test.tsv", text);
    return folder_ / "test.tsv";
  }
  std::string refused(const std::string& text) {
    const std::string path = file(text);
    return refusal_of([&] { read_references(path); }).sentence;
  }
  TemporaryFolder folder_;
};

TEST_F(ReferenceFileTest, GathersTheReferencesOfASource) {
  const ReferenceFile set = read_references(file("Hi.\tHallo.\r\nHi.\tGrüß Gott.\n\nGo.\tGeh.\t\tLauf!\nHi.\tMoin."));
  EXPECT_EQ(set.sources, (Texts{"Hi.", "Go."}));
  ASSERT_EQ(set.references.size(), 2u);
  EXPECT_EQ(set.references[0], (Texts{"Hallo.", "Grüß Gott.", "Moin."}));
  EXPECT_EQ(set.references[1], (Texts{"Geh.", "Lauf!"}));
}

TEST_F(ReferenceFileTest, SkipsAndReportsWhatIsNotUtf8) {
  const ReferenceFile set = read_references(file("\xEF\xBB\xBFHi.\tHallo.\nc\td\xFF\nGo.\tGeh.\n"));
  EXPECT_EQ(set.sources, (Texts{"Hi.", "Go."}));
  EXPECT_NE(set.skipped.find("test.tsv: skipped 1 of 3 lines (line 2): not UTF-8 at byte 4"), std::string::npos);
  EXPECT_EQ(read_references(file("Hi.\tHallo.\n")).skipped, "");
  EXPECT_NE(refused("c\td\xFF\n").find("holds no sentences; "), std::string::npos);
}

TEST_F(ReferenceFileTest, NamesTheLineThatIsWrong) {
  EXPECT_NE(refused("a\tb\nc\n").find("line 2: has no reference"), std::string::npos);
  EXPECT_NE(refused("a\t\n").find("line 1: has no reference"), std::string::npos);
  EXPECT_NE(refused("a\tb\n\tc\n").find("line 2: has no source"), std::string::npos);
  EXPECT_NE(refused("").find("holds no sentences"), std::string::npos);
  EXPECT_NE(refused("\n\n").find("holds no sentences"), std::string::npos);
  EXPECT_NE(refusal_of([&] { read_references(folder_ / "none"); }).sentence.find("cannot read"), std::string::npos);
  EXPECT_NE(refusal_of([&] { read_references(folder_.path()); }).sentence, "no refusal");
}

}  // namespace
}  // namespace mh::cli
