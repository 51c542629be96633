// Text in, text out: blank, broken and long lines, n-best, attention, and folders that are no translator.
#include "multihead/decode/translator.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "multihead/base/parallel.h"
#include "multihead/text/utf8.h"
#include "tests/decode/tiny_translator.h"
#include "tests/harness/refusal.h"
#include "tests/harness/temporary_folder.h"

namespace mh {
namespace {

class TranslatorTest : public testing::Test {
 protected:
  void SetUp() override { test::write_translator(folder_.path()); }
  TemporaryFolder folder_;
};

TEST_F(TranslatorTest, LinesComeBackInOrderAndAloneAsTogether) {
  const Translator translator = Translator::load(folder_.path());
  const std::vector<std::string> lines{"the cat sat", "a dog", "the dog sat on the mat and the cat", "cat"};
  const auto together = translator.translate(lines);
  ASSERT_EQ(together.size(), lines.size());
  for (size_t n = 0; n < lines.size(); ++n) {
    const auto alone = translator.translate({lines[n]});
    EXPECT_EQ(alone.at(0).text(), together[n].text());
    EXPECT_EQ(alone.at(0).candidates.front().score, together[n].candidates.front().score);
    EXPECT_GT(together[n].source_tokens, 0);
    EXPECT_FALSE(together[n].cut);
  }
  EXPECT_NE(together[0].text(), together[1].text());
  EXPECT_EQ(translator(lines[2]), together[2].text());
}

TEST_F(TranslatorTest, BlankLinesStayEmpty) {
  const auto out = Translator::load(folder_.path()).translate({"", "cat", " \t ", "cat"});
  EXPECT_EQ(out[0].text(), "");
  EXPECT_EQ(out[2].text(), "");
  EXPECT_FALSE(out[1].text().empty());
  EXPECT_EQ(out[1].text(), out[3].text());
}

TEST_F(TranslatorTest, BrokenBytesAreReplacementCharacters) {
  const Translator translator = Translator::load(folder_.path());
  EXPECT_EQ(translator("cat \xFF sat"), translator("cat \uFFFD sat"));
  EXPECT_EQ(translator("cat \xE2\x82"), translator("cat \uFFFD"));
  for (const Translation& translation : translator.sample({"cat"}, {.samples = 50, .temperature = 5}))
    for (const Candidate& candidate : translation.candidates) EXPECT_FALSE(utf8_error(candidate.text));
}

TEST_F(TranslatorTest, ALongLineIsCutToWhatTheModelReads) {
  const Translator translator = Translator::load(folder_.path());
  std::string line;
  for (int n = 0; n < 50000; ++n) line += "the cat ";
  const Translation translation = translator.translate({line}).at(0);
  EXPECT_TRUE(translation.cut);
  EXPECT_GT(translation.source_tokens, 50000);
  EXPECT_FALSE(translation.candidates.empty());
}

TEST_F(TranslatorTest, GivesSeveralBestAndSamples) {
  const Translator translator = Translator::load(folder_.path());
  const auto best = translator.translate({"the cat"}, {.beam = 5, .n_best = 5}).at(0);
  EXPECT_EQ(best.candidates.size(), 5u);
  EXPECT_GE(best.candidates[0].score, best.candidates[4].score);
  const auto samples = translator.sample({"the cat"}, {.samples = 3, .seed = 4}).at(0);
  EXPECT_EQ(samples.candidates.size(), 3u);
  EXPECT_EQ(translator.sample({"the cat"}, {.samples = 3, .seed = 4}).at(0).candidates[2].text,
            samples.candidates[2].text);
}

TEST_F(TranslatorTest, AttentionHasARowForEveryTokenWritten) {
  const Translator translator = Translator::load(folder_.path());
  const std::string line = "the cat  sat";
  const Candidate candidate = translator.translate({line}).at(0).candidates.front();
  const CrossAttention attention = translator.cross_attention(line, candidate, 1);
  EXPECT_EQ(attention.target.size(), candidate.ids.size() + 1);
  EXPECT_EQ(attention.source.back(), "</s>");
  EXPECT_EQ(attention.target.back(), "</s>");
  EXPECT_EQ(attention.weights.shape(),
            (Shape{3, static_cast<int64_t>(attention.target.size()), static_cast<int64_t>(attention.source.size())}));
  for (int64_t h = 0; h < 3; ++h) {
    for (int64_t t = 0; t < attention.weights.size(1); ++t) {
      double sum = 0;
      for (int64_t s = 0; s < attention.weights.size(2); ++s) sum += attention.weights.item({h, t, s});
      EXPECT_NEAR(sum, 1, 1e-5);
    }
  }
  EXPECT_EQ(attention.source_words.back(), -1);
  EXPECT_EQ(attention.source_words.front(), 0);
  EXPECT_EQ(*std::max_element(attention.source_words.begin(), attention.source_words.end()), 2);
  EXPECT_THROW(translator.cross_attention(line, candidate, 2), Error);
  EXPECT_THROW(translator.cross_attention(line, candidate, -1), Error);
}

TEST(AlignWords, TakesTheWordWithTheMostAttention) {
  // Tokens of the source belong to words 0, 1, 1; the second row's mass lies on word 1 only when its tokens are added.
  const CrossAttention attention{
      .source = {"a", "b", "c", "</s>"},
      .target = {"x", "y", "</s>"},
      .source_words = {0, 1, 1, -1},
      .target_words = {0, 1, -1},
      .weights = tensor<float>({0.6F, 0.1F, 0.1F, 0.2F, 0.3F, 0.2F, 0.2F, 0.3F, 0, 0, 0, 1}, {1, 3, 4})};
  EXPECT_EQ(align_words(attention), (std::vector<std::pair<int64_t, int64_t>>{{0, 0}, {1, 1}}));
  EXPECT_TRUE(align_words({.source = {"</s>"},
                           .target = {"</s>"},
                           .source_words = {-1},
                           .target_words = {-1},
                           .weights = full({1, 1, 1}, 1)})
                  .empty());
}

TEST_F(TranslatorTest, AFolderThatIsNoneIsNamed) {
  const auto refusal = [&] { return refusal_of([&] { Translator::load(folder_.path()); }); };
  std::filesystem::rename(folder_ / "tokenizer.json", folder_ / "t");
  EXPECT_TRUE(refusal().says("tokenizer.json"));
  const Tokenizer larger = train_bpe({"the cat sat on the mat", "some more words to learn from here"},
                                     {.vocabulary = 330, .min_frequency = 1});
  larger.save(folder_ / "tokenizer.json");
  EXPECT_TRUE(refusal().says("of the model beside it"));
  std::filesystem::rename(folder_ / "t", folder_ / "tokenizer.json");
  EXPECT_EQ(refusal().sentence, "no refusal");
  std::filesystem::remove(folder_ / "model.safetensors");
  EXPECT_TRUE(refusal().says("model.safetensors'"));
  EXPECT_TRUE(
      refusal_of([&] { Translator::load(folder_ / "tokenizer.json"); }).says("tokenizer.json' is a file; expected"));
  std::filesystem::remove(folder_ / "tokenizer.json");
  EXPECT_TRUE(refusal().says("' holds no model; expected a folder with model.safetensors and tokenizer.json"));
  std::filesystem::remove(folder_.path());
  EXPECT_TRUE(refusal().says("' is not there; expected"));
}

}  // namespace
}  // namespace mh
