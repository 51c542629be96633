// Reading pairs: one rule for every defect, and none of them silent.
#include "multihead/tasks/data/dataset.h"

#include <gtest/gtest.h>

#include <set>

#include "multihead/base/parallel.h"
#include "tests/harness/refusal.h"
#include "tests/harness/temporary_folder.h"

namespace mh {
namespace {

class Pairs : public testing::Test {
 protected:
  std::string file(const std::string& name, const std::string& text) const {
    put_text(folder_ / name, text);
    return folder_ / name;
  }
  PairText read(const std::string& text, int64_t source_column = 1, int64_t target_column = 2) const {
    return PairText({file("a.tsv", text), "", source_column, target_column});
  }
  PairText read_two(const std::string& source, const std::string& target) const {
    return PairText({file("a.en", source), file("a.de", target)});
  }
  // The sentence without the folder.
  template <class Call>
  std::string refusal(Call&& call, ErrorKind kind = ErrorKind::invalid_argument) const {
    const Refusal refusal = refusal_of(call);
    EXPECT_EQ(refusal.kind, kind);
    return bare(refusal.sentence);
  }
  std::string bare(std::string text) const {
    const std::string folder = folder_ / "";
    for (size_t at; (at = text.find(folder)) != std::string::npos;) text.erase(at, folder.size());
    return text;
  }
  std::vector<std::string> sentences(const PairReport& report) const {
    std::vector<std::string> out;
    for (const std::string& sentence : report.sentences()) out.push_back(bare(sentence));
    return out;
  }

  TemporaryFolder folder_;
};

using Sentences = std::vector<std::string>;

void expect_pair(const PairText& text, int64_t pair, std::string_view source, std::string_view target) {
  ASSERT_LT(pair, text.size());
  EXPECT_EQ(text.source(pair), source);
  EXPECT_EQ(text.target(pair), target);
}

TEST_F(Pairs, ColumnsOfATsvFile) {
  const PairText text = read("one\teins\ntwo words\tzwei W\xC3\xB6rter");
  EXPECT_EQ(text.size(), 2);
  expect_pair(text, 0, "one", "eins");
  expect_pair(text, 1, "two words", "zwei W\xC3\xB6rter");
  EXPECT_EQ(text.report().lines, 2);
  EXPECT_EQ(sentences(text.report()), Sentences{});
  expect_pair(read("x\tone\ty\teins\n", 4, 2), 0, "eins", "one");
}

TEST_F(Pairs, LinesOfTwoFiles) {
  const PairText text = read_two("one\ntab\tbed\n", "eins\nzwei");
  EXPECT_EQ(text.size(), 2);
  expect_pair(text, 0, "one", "eins");
  expect_pair(text, 1, "tab\tbed", "zwei");
}

TEST_F(Pairs, LineEndsOfWindowsAndAByteOrderMarkAreNoText) {
  const PairText text = read("\xEF\xBB\xBFone\teins\r\ntwo\tzwei\r\n");
  EXPECT_EQ(text.size(), 2);
  expect_pair(text, 0, "one", "eins");
  expect_pair(text, 1, "two", "zwei");
}

TEST_F(Pairs, ALineWithAnEmptySideIsSkippedAndCounted) {
  const PairText text = read("one\teins\n\n\tzwei\nthree\t\nfour\t  \n \t \nfive\tf\xC3\xBCnf\n");
  EXPECT_EQ(text.size(), 2);
  expect_pair(text, 1, "five", "f\xC3\xBCnf");
  EXPECT_EQ(text.line(1), 7);
  EXPECT_EQ(sentences(text.report()), Sentences{"a.tsv: skipped 5 of 7 lines (the first is line 2): an empty side"});
}

TEST_F(Pairs, ALineThatIsNotUtf8IsSkippedAndCounted) {
  const PairText text = read(
      "one\teins\ntwo\tzw\xFF"
      "ei\nthree\tdrei\n\xC3\tvier\n");
  EXPECT_EQ(text.size(), 2);
  expect_pair(text, 1, "three", "drei");
  EXPECT_EQ(
      sentences(text.report()),
      Sentences{"a.tsv: skipped 2 of 4 lines (the first is line 2): not UTF-8 at byte 7; a file in another encoding "
                "is converted by iconv -f WINDOWS-1252 -t UTF-8"});
}

TEST_F(Pairs, FurtherColumnsAreCountedAndNotRead) {
  const PairText text = read("one\teins\ntwo\tzwei\t\xFF\nthree\tdrei\t\nfour\tvier\n\n");
  EXPECT_EQ(text.size(), 4);
  expect_pair(text, 1, "two", "zwei");
  EXPECT_EQ(
      sentences(text.report()),
      (Sentences{"a.tsv: skipped 1 of 5 lines (line 5): an empty side",
                 "a.tsv: 2 of 5 lines have more than 2 columns (the first is line 2); only columns 1 and 2 are read"}));
  EXPECT_EQ(sentences(read("x\tone\ty\teins\n", 4, 2).report()), Sentences{});
  EXPECT_EQ(sentences(read_two("a\tb\tc\n", "d\n").report()), Sentences{});  // no TSV
}

TEST_F(Pairs, HeldOutSourcesAreNotInWhatStays) {
  std::string lines;
  for (int i = 0; i < 300; ++i) lines += fmt::format("source {}\ttarget {}\n", i % 200, i);
  PairText text = read(lines);
  const PairText held = text.hold_out(40);
  EXPECT_GE(held.size(), 40);
  EXPECT_LE(held.size(), 41);  // a source has two pairs at most
  EXPECT_EQ(held.size() + text.size(), 300);
  EXPECT_EQ(held.report().kept, held.size());
  EXPECT_EQ(text.report().kept, text.size());
  std::set<std::string_view> sources;
  for (int64_t i = 0; i < held.size(); ++i) sources.insert(held.source(i));
  for (int64_t i = 0; i < text.size(); ++i) EXPECT_FALSE(sources.contains(text.source(i)));
  for (int64_t i = 1; i < held.size(); ++i) EXPECT_LT(held.line(i - 1), held.line(i));
  // Spread over the file, not its beginning or its end.
  EXPECT_LT(held.line(0), 60);
  EXPECT_GT(held.line(held.size() - 1), 240);
}

TEST_F(Pairs, WhichAreHeldOutFollowsFromTheSourcesAlone) {
  std::string forwards, backwards;
  for (int i = 0; i < 100; ++i) {
    forwards += fmt::format("s{}\tt\n", i);
    backwards += fmt::format("s{}\tu\n", 99 - i);
  }
  PairText a = read(forwards), b = read(backwards);
  const PairText from_a = a.hold_out(10), from_b = b.hold_out(10);
  ASSERT_EQ(from_a.size(), 10);
  ASSERT_EQ(from_b.size(), 10);
  for (int64_t i = 0; i < 10; ++i) EXPECT_EQ(from_a.source(i), from_b.source(9 - i));
}

TEST_F(Pairs, NotMoreThanHalfIsHeldOut) {
  PairText text = read("a\tb\nc\td\ne\tf\ng\th\n");
  EXPECT_EQ(refusal([&] { text.hold_out(3); }),
            "a.tsv: 3 pairs are to be held out; expected 1 to half of the 4 there are");
  EXPECT_EQ(text.hold_out(2).size(), 2);
  PairText same = read("a\tb\na\tc\n");
  EXPECT_EQ(refusal([&] { same.hold_out(1); }),
            "a.tsv: nothing is left beside the 2 pairs held out, which have one source");
}

TEST_F(Pairs, AMegabyteInALineIsSkippedAndCounted) {
  const std::string megabyte(1 << 20, 'a');
  const Sentences expected{"a.tsv: skipped 2 of 3 lines (the first is line 1): more than 65536 bytes"};
  EXPECT_EQ(sentences(read(megabyte + "\nx\t" + megabyte + "\none\teins\n").report()), expected);
  const Sentences of_two{"a.en and a.de: skipped 1 of 2 lines (line 2): more than 65536 bytes"};
  EXPECT_EQ(sentences(read_two("one\ntwo\n", "eins\n" + megabyte).report()), of_two);
}

TEST_F(Pairs, TheLongestLineIsStillTaken) {
  const std::string side((kLongestLine - 1) / 2, 'a');
  EXPECT_EQ(read(side + "\t" + side + "a\n").size(), 1);
  EXPECT_EQ(read(side + "\t" + side + "aa\nx\ty\n").size(), 1);
}

TEST_F(Pairs, AnEmptyFileIsRefused) {
  EXPECT_EQ(refusal([&] { read(""); }), "a.tsv: empty; expected sentence pairs");
  EXPECT_EQ(refusal([&] { read("\xEF\xBB\xBF"); }), "a.tsv: empty; expected sentence pairs");
  EXPECT_EQ(refusal([&] { read_two("", ""); }), "a.en and a.de: empty; expected sentence pairs");
}

TEST_F(Pairs, AFileWithoutAPairIsRefusedWithTheReasons) {
  EXPECT_EQ(
      refusal([&] { read("\n\xFF\tx\n"); }),
      "a.tsv: no sentence pair is left; a.tsv: skipped 1 of 2 lines (line 1): an empty side; a.tsv: skipped 1 of 2 "
      "lines (line 2): not UTF-8 at byte 1; a file in another encoding is converted by iconv -f WINDOWS-1252 -t UTF-8");
}

TEST_F(Pairs, AMissingColumnIsRefusedWithTheLine) {
  EXPECT_EQ(refusal([&] { read("one\teins\ntwo\n"); }), "a.tsv:2: the line has 1 column; expected text in column 2");
  EXPECT_EQ(refusal([&] { read("one\teins\n", 1, 4); }), "a.tsv:1: the line has 2 columns; expected text in column 4");
  EXPECT_EQ(refusal([&] { read("one\teins\n", 0, 1); }), "pairs: columns 0 and 1; expected 1 or more");
}

TEST_F(Pairs, TwoFilesOfDifferentLengthsAreRefused) {
  EXPECT_EQ(refusal([&] { read_two("one\ntwo\n", "eins\n"); }),
            "a.en has 2 lines and a.de has 1; expected the same number, line by line");
}

TEST_F(Pairs, AFileThatIsNotThereIsRefused) {
  EXPECT_EQ(refusal([&] { PairText({.source = folder_ / "none.tsv"}); }, ErrorKind::io),
            "cannot read 'none.tsv': No such file or directory");
  EXPECT_EQ(refusal([&] { PairText({.source = folder_.path()}); }, ErrorKind::io).substr(0, 11), "cannot read");
}

class Datasets : public Pairs {
 protected:
  // So many lines that several tasks encode them.
  std::string many() const {
    std::string text;
    for (int i = 0; i < 3000; ++i)
      text += fmt::format("sentence {} of {}\tSatz {}{}\n", i, i * i, i, std::string(static_cast<size_t>(i % 50), '!'));
    return text;
  }
  Tokenizer tokenizer_ = train_bpe({"sentence of Satz"}, {.vocabulary = 280});
};

TEST_F(Datasets, HoldTheIdsOfEveryPair) {
  const PairText text = read(many());
  const Dataset data(text, tokenizer_, 1000);
  ASSERT_EQ(data.size(), 3000);
  int64_t source_tokens = 0, target_tokens = 0;
  for (int64_t i = 0; i < data.size(); ++i) {
    const std::vector<int32_t> source(data.source(i).begin(), data.source(i).end());
    const std::vector<int32_t> target(data.target(i).begin(), data.target(i).end());
    ASSERT_EQ(source, tokenizer_.encode(text.source(i)));
    ASSERT_EQ(target, tokenizer_.encode(text.target(i)));
    ASSERT_EQ(data.text_pair(i), i);
    source_tokens += static_cast<int64_t>(source.size()) + 1;
    target_tokens += static_cast<int64_t>(target.size()) + 1;
  }
  EXPECT_EQ(data.source_tokens(), source_tokens);
  EXPECT_EQ(data.target_tokens(), target_tokens);
}

TEST_F(Datasets, AreTheSameForAnyNumberOfThreads) {
  const PairText text = read(many());
  const int before = threads();
  set_threads(1);
  const Dataset one(text, tokenizer_, 40);
  set_threads(3);
  const Dataset three(text, tokenizer_, 40);
  set_threads(before);
  ASSERT_EQ(one.size(), three.size());
  for (int64_t i = 0; i < one.size(); ++i) {
    ASSERT_TRUE(std::ranges::equal(one.source(i), three.source(i)));
    ASSERT_TRUE(std::ranges::equal(one.target(i), three.target(i)));
  }
}

TEST_F(Datasets, LeaveOutPairsThatAreTooLongWithTheirEnd) {
  const PairText text = read("a\tb\n\nab\tb\na\tabc\nc\td\n");
  const Tokenizer bytes = train_bpe({}, {.vocabulary = 260, .prefix_space = false});
  const Dataset data(text, bytes, 2);
  ASSERT_EQ(data.size(), 2);
  EXPECT_EQ(data.text_pair(1), 3);
  EXPECT_EQ(data.report().kept, 2);
  EXPECT_EQ(sentences(data.report()),
            (Sentences{"a.tsv: skipped 1 of 5 lines (line 2): an empty side",
                       "a.tsv: skipped 2 of 5 lines (the first is line 3): more than 2 tokens on a side"}));
  EXPECT_EQ(Dataset(text, bytes, 3).size(), 3);
  EXPECT_EQ(Dataset(text, bytes, 4).size(), 4);
}

TEST_F(Datasets, WithoutAPairAreRefused) {
  EXPECT_EQ(refusal([&] { Dataset(read("Satz\tx y z\n"), tokenizer_, 2); }),
            "a.tsv: no sentence pair is left; a.tsv: skipped 1 of 1 lines (line 1): more than 2 tokens on a side");
  EXPECT_EQ(refusal([&] { Dataset(read("a\tb\n"), tokenizer_, 1); }),
            "Dataset: max_length is 1; expected a token and its end, 2 or more");
}

}  // namespace
}  // namespace mh
