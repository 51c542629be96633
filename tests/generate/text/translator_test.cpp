// Text in, text out: sentences, blank, broken and long lines, n-best, attention, and folders that are no translator.
#include "multihead/generate/text/translator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <mutex>
#include <set>

#include "multihead/base/parallel.h"
#include "multihead/text/unicode/utf8.h"
#include "tests/generate/tiny_translator.h"
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

TEST_F(TranslatorTest, SentencesAreTranslatedEachForItself) {
  const Translator translator = Translator::load(folder_.path());
  const std::string first = "the cat sat.", second = "A dog?", third = "The mat";
  const Translation whole = translator.translate({" " + first + "  " + second + "\n\n" + third + "\t"}).at(0);
  EXPECT_EQ(whole.text(), " " + translator(first) + "  " + translator(second) + "\n\n" + translator(third) + "\t");
  const Candidate& candidate = whole.candidates.front();
  ASSERT_EQ(candidate.sentences.size(), 3u);
  std::vector<int32_t> ids;
  std::vector<float> scores;
  double sum = 0;
  int64_t tokens = 0;
  for (size_t n = 0; n < 3; ++n) {
    const std::string source = n == 0 ? first : n == 1 ? second : third;
    const Translation alone = translator.translate({source}).at(0);
    const TranslatedSentence& sentence = candidate.sentences[n];
    EXPECT_EQ(sentence.source, source);
    EXPECT_EQ(sentence.text, alone.text());
    EXPECT_EQ(sentence.ids, alone.candidates.front().ids);
    EXPECT_EQ(sentence.score, alone.candidates.front().score);
    ids.insert(ids.end(), sentence.ids.begin(), sentence.ids.end());
    scores.insert(scores.end(), sentence.token_scores.begin(), sentence.token_scores.end());
    sum += sentence.score;
    tokens += alone.source_tokens;
  }
  EXPECT_EQ(candidate.ids, ids);
  EXPECT_EQ(candidate.token_scores, scores);
  EXPECT_NEAR(candidate.score, sum / 3, 1e-12);
  EXPECT_EQ(whole.source_tokens, tokens);
}

TEST_F(TranslatorTest, AWholeLineIsOneSentence) {
  const Translator translator = Translator::load(folder_.path());
  const std::string line = "the cat sat. A dog? The mat";
  const Translation whole = translator.translate({line}, {}, {.split = false}).at(0);
  ASSERT_EQ(whole.candidates.front().sentences.size(), 1u);
  EXPECT_EQ(whole.candidates.front().sentences[0].source, line);
  EXPECT_NE(whole.text(), translator(line));
}

TEST_F(TranslatorTest, TheBestOfALineAreTheBestCombinations) {
  const Translator translator = Translator::load(folder_.path());
  const SearchOptions options{.beam = 4, .n_best = 4};
  const auto a = translator.translate({"the cat sat."}, options).at(0).candidates;
  const auto b = translator.translate({"A dog?"}, options).at(0).candidates;
  std::vector<std::pair<double, std::string>> all;
  for (const Candidate& x : a)
    for (const Candidate& y : b) all.emplace_back((x.score + y.score) / 2, x.text + " " + y.text);
  std::stable_sort(all.begin(), all.end(), [](const auto& x, const auto& y) { return x.first > y.first; });
  const auto both = translator.translate({"the cat sat. A dog?"}, options).at(0).candidates;
  ASSERT_EQ(both.size(), 4u);
  for (size_t n = 0; n < 4; ++n) {
    EXPECT_NEAR(both[n].score, all[n].first, 1e-12);
    EXPECT_EQ(both[n].text, all[n].second);
  }
}

TEST_F(TranslatorTest, SamplesOfALineDependOnItsNumberAlone) {
  const Translator translator = Translator::load(folder_.path());
  const std::vector<std::string> lines{"the cat. A dog. The mat.", "the cat. A dog.", "the cat. A dog."};
  const SamplingOptions options{.samples = 2, .temperature = 2, .seed = 3};
  const auto all = translator.sample(lines, options);
  EXPECT_NE(all[1].text(), all[2].text());
  for (size_t n = 0; n < lines.size(); ++n) {
    SamplingOptions alone = options;
    alone.first_sentence = n;
    const auto one = translator.sample({lines[n]}, alone).at(0);
    ASSERT_EQ(one.candidates.size(), 2u);
    for (size_t k = 0; k < 2; ++k) {
      EXPECT_EQ(one.candidates[k].text, all[n].candidates[k].text);
      double sum = 0;
      for (const float score : all[n].candidates[k].token_scores) sum += score;
      EXPECT_NEAR(all[n].candidates[k].score, sum, 1e-4);
    }
  }
  EXPECT_NE(all[0].candidates[0].text, all[0].candidates[1].text);
  const auto repeated = translator.sample({"A cat. A cat. A cat. A cat."}, options);
  std::set<std::string> apart;
  for (const TranslatedSentence& sentence : repeated.at(0).candidates[0].sentences) apart.insert(sentence.text);
  EXPECT_EQ(apart.size(), 4u);
}

TEST_F(TranslatorTest, TellsOfEveryLineOnceItIsDone) {
  const Translator translator = Translator::load(folder_.path());
  const std::vector<std::string> lines{"the cat. A dog.", "", "a dog", " ", "The mat! The cat? A cat."};
  std::mutex mutex;
  std::map<size_t, std::string> heard;
  const auto out = translator.translate(lines, {.batch = {.tokens = 1}},
                                        {.on_line = [&](size_t line, const Translation& translation) {
                                          const std::lock_guard lock(mutex);
                                          EXPECT_TRUE(heard.emplace(line, translation.text()).second) << line;
                                        }});
  ASSERT_EQ(heard.size(), lines.size());
  for (size_t n = 0; n < lines.size(); ++n) EXPECT_EQ(heard.at(n), out[n].text());
}

TEST_F(TranslatorTest, AlignmentsCountWordsThroughTheLine) {
  const Translator translator = Translator::load(folder_.path());
  const std::string first = "the cat sat on.", second = "A dog?";
  const Candidate both = translator.translate({first + " " + second}).at(0).candidates.front();
  std::vector<std::pair<int64_t, int64_t>> wanted;
  int64_t source = 0, target = 0;
  for (const std::string& line : {first, second}) {
    const Candidate one = translator.translate({line}).at(0).candidates.front();
    const CrossAttention attention = translator.cross_attention(line, one, 1);
    for (const auto& [i, j] : align_words(attention)) wanted.emplace_back(source + i, target + j);
    source += *std::max_element(attention.source_words.begin(), attention.source_words.end()) + 1;
    target += *std::max_element(attention.target_words.begin(), attention.target_words.end()) + 1;
  }
  EXPECT_EQ(source, 6);
  EXPECT_EQ(translator.align(both, 1), wanted);
}

TEST_F(TranslatorTest, BrokenBytesAreRefusedAndNeverWritten) {
  const Translator translator = Translator::load(folder_.path());
  EXPECT_TRUE(refusal_of([&] { translator("caf\xE9 na\xEFve"); }).says("byte 4 of "));
  EXPECT_TRUE(refusal_of([&] { translator.translate({"cat", "cat \xE2\x82"}); }).says("byte 5 of "));
  for (const Translation& translation : translator.sample({"cat"}, {.samples = 50, .temperature = 5}))
    for (const Candidate& candidate : translation.candidates) {
      EXPECT_FALSE(utf8_error(candidate.text));
      EXPECT_EQ(candidate.text.find("\uFFFD"), std::string::npos);
    }
}

TEST_F(TranslatorTest, AnEmptyNameIsRefused) {
  EXPECT_TRUE(refusal_of([] { Translator::load(""); }).says("the name of the model's folder is empty"));
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
      {.source = {"a", "b", "c", "</s>"},
       .target = {"x", "y", "</s>"},
       .source_words = {0, 1, 1, -1},
       .target_words = {0, 1, -1}},
      tensor<float>({0.6F, 0.1F, 0.1F, 0.2F, 0.3F, 0.2F, 0.2F, 0.3F, 0, 0, 0, 1}, {1, 3, 4})};
  EXPECT_EQ(align_words(attention), (std::vector<std::pair<int64_t, int64_t>>{{0, 0}, {1, 1}}));
  const SentenceTokens ends{.source = {"</s>"}, .target = {"</s>"}, .source_words = {-1}, .target_words = {-1}};
  EXPECT_TRUE(align_words({ends, full({1, 1, 1}, 1)}).empty());
}

TEST_F(TranslatorTest, AFolderThatIsNoneIsNamed) {
  const auto refusal = [&] { return refusal_of([&] { Translator::load(folder_.path()); }); };
  std::filesystem::rename(folder_ / "tokenizer.json", folder_ / "t");
  EXPECT_TRUE(refusal().says("tokenizer.json"));
  const Tokenizer larger = train_bpe({"the cat sat on the mat", "some more words to learn from here"},
                                     {.vocabulary = 330, .min_frequency = 1});
  larger.save(folder_ / "tokenizer.json");
  EXPECT_TRUE(refusal().says("tokenizer.json' does not belong to '"));
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
