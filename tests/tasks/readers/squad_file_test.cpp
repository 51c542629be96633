// SQuAD files: answers stand where characters, not bytes, say they do; what does not fit is counted.
#include "multihead/tasks/readers/squad_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/harness/refusal.h"
#include "tests/harness/temporary_folder.h"

namespace mh {
namespace {

class SquadFiles : public testing::Test {
 protected:
  SquadFile read(const std::string& text, int64_t max_broken = 100) {
    put_text(folder_ / "a.json", text);
    return read_squad(folder_ / "a.json", max_broken);
  }
  static std::string with(const std::string& questions) {
    return R"({"version":"1.1","data":[{"title":"t","paragraphs":[{"context":"\u00C4da was b\u00F6rn here.","qas":[)" +
           questions + "]}]}]}";
  }
  TemporaryFolder folder_;
};

const char* const kGood = R"({"id":"1","question":"where?","answers":[{"text":"here","answer_start":13}]})";

TEST_F(SquadFiles, PlacesAreCharacters) {
  const SquadFile file =
      read(with(std::string(kGood) + R"(,{"id":"2","question":"why?","answers":[],"is_impossible":true})"));
  ASSERT_EQ(file.questions.size(), 2U);
  EXPECT_EQ(file.questions[0].question, "where?");
  ASSERT_EQ(file.questions[0].answers.size(), 1U);
  EXPECT_EQ(file.questions[0].answers[0].begin, 15U);  // two characters of two bytes stand before
  EXPECT_EQ(file.contexts[0].substr(15, 4), "here");
  EXPECT_TRUE(file.questions[1].answers.empty());
}

TEST_F(SquadFiles, BrokenQuestionsAreCounted) {
  const std::string some =
      with(std::string(kGood) + R"(,{"id":"2","question":"?","answers":[{"text":"here","answer_start":12}]},)" +
           R"({"id":"3","question":"?","answers":[{"text":"here","answer_start":-1}]},{"id":4}, 5)");
  const SquadFile file = read(some);
  EXPECT_EQ(file.questions.size(), 1U);
  EXPECT_THAT(file.report, testing::ElementsAre(
                               testing::HasSubstr("skipped 2 of 5 rows (the first is line 2): an answer that is not"),
                               testing::HasSubstr("skipped 2 of 5 rows (the first is line 4): no id or no question")));
  EXPECT_TRUE(refusal_of([&] { read(some, 3); }).says("4 broken rows where data.max_broken is 3"));
}

TEST_F(SquadFiles, OtherFilesAreRefused) {
  for (const char* text : {"", "[]", "{}", "{\"data\":[{}]}", "{\"data\":[{\"paragraphs\":[{\"qas\":[]}]}]}"})
    EXPECT_EQ(refusal_of([&] { read(text); }).kind, ErrorKind::io) << text;
  EXPECT_TRUE(refusal_of([&] { read(with("")); }).says("no question is left"));
}

}  // namespace
}  // namespace mh
