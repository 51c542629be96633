// Tables of every format give the rows that were written, and broken ones are counted with their lines.
#include "multihead/tasks/readers/table_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "multihead/base/random.h"
#include "tests/harness/refusal.h"
#include "tests/harness/temporary_folder.h"

namespace mh {
namespace {

using Rows = std::vector<std::vector<std::string>>;

class TableFiles : public testing::Test {
 protected:
  Rows read(const std::string& name, const std::string& text, TableOptions options) {
    put_text(folder_ / name, text);
    TableFile file(folder_ / name, options);
    Rows out;
    lines_.clear();
    while (file.next()) {
      out.push_back(file.fields());
      lines_.push_back(file.line());
    }
    report_ = file.broken().sentences(file.rows());
    return out;
  }
  std::string refused(const std::string& name, const std::string& text, const TableOptions& options) {
    return refusal_of([&] { read(name, text, options); }).sentence;
  }

  TemporaryFolder folder_;
  std::vector<int64_t> lines_;
  std::vector<std::string> report_;
};

TEST_F(TableFiles, ColumnsComeInTheOrderAskedFor) {
  EXPECT_EQ(read("a.tsv", "a\tb\tc\r\n\nd\te\tf", {.columns = {"3", "1"}}), (Rows{{"c", "a"}, {"f", "d"}}));
  EXPECT_EQ(lines_, (std::vector<int64_t>{1, 3}));
  EXPECT_EQ(read("a.csv", "x,y\na,b\n", {.columns = {"y", "1"}}), (Rows{{"b", "a"}}));
  EXPECT_EQ(read("a.csv", "x,y\na,b\n", {.columns = {"2"}, .header = true}), (Rows{{"b"}}));
  EXPECT_EQ(read("a.jsonl", R"({"text":"a\nb","n":3,"ok":true})", {.columns = {"n", "text", "ok"}}),
            (Rows{{"3", "a\nb", "true"}}));
  EXPECT_EQ(read("a.txt", "a,b\n", {.columns = {"2"}, .format = TableFormat::csv}), (Rows{{"b"}}));
}

TEST_F(TableFiles, CsvFieldsHoldWhatQuotesProtect) {
  EXPECT_EQ(read("a.csv", "\"a, \"\"b\"\"\nc\",d\r\ne \"f\",\n\n\"\",x", {.columns = {"1", "2"}}),
            (Rows{{"a, \"b\"\nc", "d"}, {"e \"f\"", ""}, {"", "x"}}));
  EXPECT_EQ(lines_, (std::vector<int64_t>{1, 3, 5}));
}

TEST_F(TableFiles, CsvThatWasWrittenComesBack) {
  Random random(7);
  const std::string_view signs = "a,\"\n b\r";
  for (int round = 0; round < 200; ++round) {
    Rows rows;
    std::string text;
    for (int64_t r = 1 + random.below(4); r > 0; --r) {
      rows.push_back({"-", ""});
      for (int64_t n = random.below(6); n > 0; --n)
        rows.back()[1] += signs[static_cast<size_t>(random.below(static_cast<int64_t>(signs.size())))];
      text += "-,\"";
      for (const char c : rows.back()[1]) text += c == '"' ? "\"\"" : std::string(1, c);
      text += "\"\n";
    }
    ASSERT_EQ(read("a.csv", text, {.columns = {"1", "2"}}), rows) << text;
  }
}

TEST_F(TableFiles, BrokenRowsAreCountedWithTheirLines) {
  EXPECT_EQ(read("a.tsv", "a\tb\nc\nd\te\nna\xEFve\tx\nf\n", {.columns = {"1", "2"}}), (Rows{{"a", "b"}, {"d", "e"}}));
  EXPECT_THAT(report_, testing::ElementsAre(testing::HasSubstr("skipped 2 of 5 rows (the first is line 2): 1 column; "
                                                               "expected text in column 2"),
                                            testing::HasSubstr("skipped 1 of 5 rows (line 4): not UTF-8")));
  EXPECT_EQ(read("a.jsonl", "{\"t\":\"a\"}\n[1]\n{\"t\":\n{\"u\":1}\n{\"t\":\"b\"}", {.columns = {"t"}}),
            (Rows{{"a"}, {"b"}}));
  EXPECT_THAT(report_, testing::ElementsAre(testing::HasSubstr("2 of 5 rows (the first is line 2): not a JSON object"),
                                            testing::HasSubstr("(line 4): no key 't'")));
  // An open quote costs its own line.
  EXPECT_EQ(read("a.csv", "a,b\ng,\"h\"i\n\"c,d\ne,f\n", {.columns = {"2"}}), (Rows{{"b"}, {"f"}}));
  EXPECT_THAT(report_, testing::ElementsAre(testing::HasSubstr("1 of 4 rows (line 2): text follows a closed quote"),
                                            testing::HasSubstr("(line 3): a quote is opened and not closed")));
}

TEST_F(TableFiles, OneMoreThanMaxBrokenIsRefused) {
  const std::string text = "a\nb\nc\td\n";
  EXPECT_EQ(read("a.tsv", text, {.columns = {"2"}, .max_broken = 2}), (Rows{{"d"}}));
  EXPECT_EQ(
      refused("a.tsv", text, {.columns = {"2"}, .max_broken = 1}),
      "'" + (folder_ / "a.tsv") + "':2: 1 column; expected text in column 2; 2 broken rows where data.max_broken is 1");
}

TEST_F(TableFiles, ColumnsThatAreNotThereAreRefused) {
  EXPECT_THAT(refused("a.csv", "text,label\n", {.columns = {"txt"}}), testing::HasSubstr("did you mean 'text'?"));
  EXPECT_THAT(refused("a.tsv", "", {.columns = {"text"}}), testing::HasSubstr("it is empty"));
  EXPECT_THAT(refused("a.jsonl", "{}", {.columns = {"1"}}), testing::HasSubstr("column 1 is asked for"));
  EXPECT_EQ(refusal_of([&] { TableFile(folder_ / "none.tsv", {}); }).kind, ErrorKind::io);
}

}  // namespace
}  // namespace mh
