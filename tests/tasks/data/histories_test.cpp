// Histories: in the order of time, ties as they stand; what is wrong with a row or a user is said with its line.
#include "multihead/tasks/data/histories.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/harness/refusal.h"
#include "tests/harness/temporary_folder.h"

namespace mh {
namespace {

class HistoryFiles : public testing::Test {
 protected:
  Histories read(const std::string& text, const HistoryOptions& options = {}) {
    put_text(folder_ / "a.tsv", text);
    return read_histories(folder_ / "a.tsv", data_, options);
  }
  std::string refused(const std::string& text) {
    return refusal_of([&] { read(text); }).sentence;
  }
  static std::vector<std::string> names(const Histories& all, size_t user) {
    std::vector<std::string> out;
    for (const int32_t item : all.users[user].items) out.push_back(all.items[static_cast<size_t>(item)]);
    return out;
  }
  using Strings = std::vector<std::string>;
  TemporaryFolder folder_;
  DataConfig data_;
};

TEST_F(HistoryFiles, AreSortedByTimeAndTiesStandAsInTheFile) {
  const std::string text = "ann\tz\t5\nbob\tx\t1\nann\tb\t2.5\nann\ta\t2.5\nbob\ty\t-3\nann\tc d\t1e2\n";
  const Histories all = read(text);
  ASSERT_EQ(all.users.size(), 2U);
  EXPECT_EQ(all.users[0].user, "ann");
  EXPECT_EQ(names(all, 0), (Strings{"b", "a", "z", "c d"}));
  EXPECT_EQ(names(all, 1), (Strings{"y", "x"}));
  EXPECT_EQ(all.events(), 6);
  EXPECT_TRUE(all.report.empty());
  data_.time = "";
  EXPECT_EQ(names(read(text), 0), (Strings{"z", "b", "a", "c d"}));
}

TEST_F(HistoryFiles, ColumnsAreFoundByName) {
  data_.user = "userId";
  data_.item = "film";
  data_.time = "at";
  EXPECT_EQ(names(read("at\tfilm\tuserId\n2\tx\tann\n1\ty\tann\n"), 0), (Strings{"y", "x"}));
  EXPECT_THAT(refused("when\tfilm\tuserId\n2\tx\tann\n"), testing::HasSubstr("a.tsv':1: there is no column 'at'"));
}

TEST_F(HistoryFiles, WhatIsWrongIsSaidWithItsLine) {
  const Histories all = read("ann\ta\t1\nann\tb\tnoon\nann\tc\nann\t\t3\nann\td\t4\nbob\te\t1\n");
  EXPECT_EQ(names(all, 0), (Strings{"a", "d"}));
  EXPECT_EQ(all.users.size(), 1U);
  for (const char* sentence :
       {"(line 2): the time 'noon' is no number", "(line 3): 2 columns; expected text in column 3", "(line 4): no item",
        "left out 1 of 2 users (the first is 'bob', line 6): fewer than 2 items"})
    EXPECT_THAT(all.report, testing::Contains(testing::HasSubstr(sentence)));
  EXPECT_EQ(all.report.size(), 4U);
  EXPECT_THAT(refused(""), testing::HasSubstr("a.tsv': empty; expected rows of user, item and time"));
  EXPECT_THAT(refused("ann\ta\t1\nbob\ta\t1\n"),
              testing::HasSubstr("a.tsv': no user is left; " + folder_.path() +
                                 "/a.tsv: left out 2 of 2 users (the first is 'ann', line 1)"));
  data_.max_broken = 0;
  EXPECT_THAT(refused("ann\ta\t1\nann\tb\tnan\n"), testing::HasSubstr(":2: the time 'nan' is no number"));
  EXPECT_THAT(refused("ann\t<s>\t1\n"), testing::HasSubstr(":1: an item is called '<s>', as a special token is"));
}

TEST_F(HistoryFiles, ItemsAreWordsTheMostFrequentFirst) {
  const Histories all = read("ann\tThe End\t1\nann\tb, c\t2\nbob\tb, c\t1\nbob\ta\t2\n");
  const Tokenizer tokenizer = item_tokenizer(all);
  EXPECT_EQ(tokenizer.size(), 7);
  EXPECT_EQ(first_item(tokenizer), 4);
  EXPECT_EQ(tokenizer.token(4), "b, c");
  EXPECT_EQ(tokenizer.token(5), "The End");
  EXPECT_EQ(tokenizer.token(6), "a");
  EXPECT_EQ(tokenizer.encode("The End\tb, c\tnever seen\ta"), (std::vector<int32_t>{5, 4, 3, 6}));
  EXPECT_EQ(item_ids(all, tokenizer), (std::vector<std::vector<int32_t>>{{5, 4}, {4, 6}}));
  const Histories more = read("ann\tnew\t0\nann\ta\t1\nann\tb, c\t2\n", {.vocabulary = &tokenizer});
  EXPECT_EQ(item_ids(more, tokenizer), (std::vector<std::vector<int32_t>>{{6, 4}}));
  EXPECT_THAT(more.report, testing::ElementsAre(testing::HasSubstr("(line 1): an item that the model does not know")));
}

}  // namespace
}  // namespace mh
