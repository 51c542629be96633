// From the files a config names to the data of a run.
#include "multihead/tasks/data/corpus.h"

#include <gtest/gtest.h>

#include "tests/harness/refusal.h"
#include "tests/harness/temporary_folder.h"

namespace mh {
namespace {

class Corpora : public testing::Test {
 protected:
  void SetUp() override {
    std::string text;
    for (int i = 0; i < 50; ++i) text += "the house is small\tdas Haus ist klein\n";
    config_.data.train = file("train.tsv", text + "\n");
    config_.tokenizer.vocabulary = 300;
  }
  std::string file(const std::string& name, const std::string& text) const {
    put_text(folder_ / name, text);
    return folder_ / name;
  }
  std::string refusal() const {
    return refusal_of([&] { read_corpus(config_); }).sentence;
  }

  TemporaryFolder folder_;
  TaskSetup config_;
};

TEST_F(Corpora, LearnATokenizerFromBothSides) {
  std::vector<std::string> messages;
  int64_t last = 0;
  config_.events = {.on_message = [&](const std::string& text) { messages.push_back(text); },
                    .on_wait = [&](const std::string&, int64_t done, int64_t) { last = done; }};
  const Corpus data = read_corpus(config_);
  EXPECT_EQ(data.train.size(), 50);
  EXPECT_EQ(data.valid.size(), 0);
  EXPECT_TRUE(data.tokenizer.id("\xC4\xA0house").has_value());
  EXPECT_TRUE(data.tokenizer.id("\xC4\xA0Haus").has_value());
  EXPECT_EQ(messages.size(), 1U);  // the empty line
  EXPECT_GT(last, 0);
}

TEST_F(Corpora, ReadTheValidationPairs) {
  config_.data.valid = file("valid.tsv", "a house\tein Haus\n\nthe house\tdas Haus\n");
  const Corpus data = read_corpus(config_);
  EXPECT_EQ(data.valid.size(), 2);
  EXPECT_EQ(data.valid_text.source(1), "the house");
}

TEST_F(Corpora, HoldOutPairsForValidation) {
  std::string text;
  for (int i = 0; i < 50; ++i) text += fmt::format("house {}\tHaus {}\n", i, i);
  config_.data.train = file("own.tsv", text);
  config_.data.hold_out = 5;
  const Corpus data = read_corpus(config_);
  EXPECT_EQ(data.valid.size(), 5);
  EXPECT_EQ(data.valid_text.size(), 5);
  EXPECT_EQ(data.train.size(), 45);
}

TEST_F(Corpora, LoadTheTokenizerThatIsNamed) {
  const Tokenizer tokenizer = train_bpe({"das das Haus Haus"}, {.vocabulary = 270});
  config_.tokenizer.path = folder_ / "tokenizer.json";
  tokenizer.save(config_.tokenizer.path);
  const Corpus data = read_corpus(config_);
  EXPECT_EQ(data.tokenizer.json(), tokenizer.json());
}

TEST_F(Corpora, TakeTheTokenizerOfTheCallBeforeTheConfigs) {
  const Tokenizer tokenizer = train_bpe({"das das Haus Haus"}, {.vocabulary = 270});
  config_.tokenizer.path = folder_ / "none.json";
  tokenizer.save(folder_ / "tokenizer.json");
  config_.tokenizer_file = folder_ / "tokenizer.json";
  EXPECT_EQ(read_corpus(config_).tokenizer.json(), tokenizer.json());
}

TEST_F(Corpora, ObeyTheSettingsOfTheTokenizer) {
  config_.tokenizer.lowercase = true;
  const Corpus data = read_corpus(config_);
  EXPECT_EQ(data.tokenizer.encode("HAUS"), data.tokenizer.encode("haus"));
}

TEST_F(Corpora, LeaveOutPairsLongerThanTheModelTakes) {
  config_.model.max_length = 3;
  EXPECT_NE(refusal().find("more than 3 tokens on a side"), std::string::npos);
  config_.model.max_length = 100;
  config_.data.max_length = 4;
  EXPECT_NE(refusal().find("more than 4 tokens on a side"), std::string::npos);
}

TEST_F(Corpora, RefuseAVocabularyThatIsNotTheTokenizers) {
  config_.model.vocabulary = 299;
  EXPECT_TRUE(refusal().starts_with("config: model.vocabulary is 299, and the tokenizer has "));
}

TEST_F(Corpora, RefuseATokenizerWithOtherSpecialTokens) {
  config_.tokenizer.path = folder_ / "tokenizer.json";
  train_bpe({}, {.vocabulary = 260, .specials = {"<pad>", "</s>", "<s>"}}).save(config_.tokenizer.path);
  EXPECT_EQ(refusal(), "tokenizer: the token <s> has id 2; expected a special one with id 1");
  train_bpe({}, {.vocabulary = 260, .specials = {"<pad>", "<s>"}}).save(config_.tokenizer.path);
  EXPECT_EQ(refusal(), "tokenizer: there is no token </s>; expected it with id 2");
}

}  // namespace
}  // namespace mh
