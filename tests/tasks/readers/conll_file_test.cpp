// CoNLL files: which lines make a sentence, and which are broken.
#include "multihead/tasks/readers/conll_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/harness/refusal.h"
#include "tests/harness/temporary_folder.h"

namespace mh {
namespace {

using Strings = std::vector<std::string>;

class ConllFiles : public testing::Test {
 protected:
  TaggedSentences read(const std::string& text, const ConllOptions& options = {}) {
    put_text(folder_ / "a.conll", text);
    return read_conll(folder_ / "a.conll", options);
  }
  TemporaryFolder folder_;
};

TEST_F(ConllFiles, BlankLinesEndSentencesAndColumnsAreChosen) {
  const std::string text = "-DOCSTART- -X- O\n\n\nEU NNP  B-ORG\r\nrejects\tVBZ\tO\n \n\nPeter NNP B-PER";
  const TaggedSentences last = read(text, {.tag_column = -1});
  ASSERT_EQ(last.sentences.size(), 2U);
  EXPECT_EQ(last.sentences[0].words, (Strings{"EU", "rejects"}));
  EXPECT_EQ(last.sentences[0].tags, (Strings{"B-ORG", "O"}));
  EXPECT_EQ(last.sentences[0].line, 4);
  EXPECT_EQ(last.sentences[1].tags, (Strings{"B-PER"}));
  EXPECT_EQ(last.sentences[1].line, 8);
  EXPECT_EQ(read(text).sentences[0].tags, (Strings{"NNP", "VBZ"}));
  EXPECT_TRUE(last.report.empty());
}

TEST_F(ConllFiles, ASentenceWithABrokenLineIsSkipped) {
  const TaggedSentences found = read("a O\nb\nc O\n\nd O\n\n\xFF O\n");
  ASSERT_EQ(found.sentences.size(), 1U);
  EXPECT_EQ(found.sentences[0].words, (Strings{"d"}));
  EXPECT_THAT(found.report, testing::ElementsAre(testing::HasSubstr("(line 2): 1 column; expected text in column 2"),
                                                 testing::HasSubstr("(line 7): not UTF-8")));
  EXPECT_TRUE(refusal_of([&] { read("a O\nb\n", {.max_broken = 0}); }).says("a.conll':2: 1 column"));
}

TEST_F(ConllFiles, FilesWithoutASentenceAreRefused) {
  EXPECT_TRUE(refusal_of([&] { read(""); }).says("empty; expected lines with a word and its tag"));
  EXPECT_TRUE(refusal_of([&] { read("\n\n"); }).says("no sentence is left"));
  EXPECT_TRUE(refusal_of([&] { read("a O", {.word_column = 0}); }).says("expected numbers from 1, or -1"));
}

}  // namespace
}  // namespace mh
