// Text in, text out, against search and sample over the same model.
#include "multihead/generate/text/text_generator.h"

#include <gtest/gtest.h>

#include <map>
#include <mutex>

#include "multihead/generate/search.h"
#include "tests/generate/tiny_language_model.h"
#include "tests/harness/refusal.h"
#include "tests/harness/temporary_folder.h"

namespace mh {
namespace {

class TextGenerators : public testing::Test {
 protected:
  TextGenerators() { test::write_language_model(folder_ / "model"); }
  TemporaryFolder folder_;
  const std::vector<std::string> prompts_{"the cat", "", "a dog sat on"};
};

TEST_F(TextGenerators, WritesWhatTheModelWrites) {
  const TextGenerator generator = TextGenerator::load(folder_ / "model");
  LanguageModelFolder loaded = load_language_model(folder_ / "model");
  loaded.model.pack();
  Prompts ids;
  for (const std::string& prompt : prompts_) ids.push_back(loaded.tokenizer.encode(prompt));
  GenerationConfig how = generator.defaults();
  EXPECT_TRUE(how.sample);
  how.sampling.seed = 4;
  const auto drawn = generator.write(prompts_, how);
  const auto expected = sample(loaded.model, ids, {.seed = 4});
  how.sample = false;
  how.search = {.beam = 3, .n_best = 2, .rules = {.max_length = 6}};
  const auto found = generator.write(prompts_, how);
  const auto best = search(loaded.model, ids, how.search);
  for (size_t n = 0; n < prompts_.size(); ++n) {
    ASSERT_EQ(drawn[n].size(), 1U);
    EXPECT_EQ(drawn[n][0].ids, expected[n][0].ids);
    ASSERT_EQ(found[n].size(), 2U);
    EXPECT_EQ(found[n][1].ids, best[n][1].ids);
  }
}

TEST_F(TextGenerators, TheTextIsWhatStandsBehindThePrompt) {
  const TextGenerator generator = TextGenerator::load(folder_ / "model");
  const Tokenizer tokenizer = Tokenizer::load(folder_ / "model/tokenizer.json");
  GenerationConfig how = generator.defaults();
  how.sampling.samples = 20;
  const auto written = generator.write({"the cat"}, how);
  for (const Continuation& each : written[0]) {
    std::vector<int32_t> all = tokenizer.encode("the cat");
    all.insert(all.end(), each.ids.begin(), each.ids.end());
    const std::string whole = tokenizer.decode(all);
    EXPECT_TRUE(whole.starts_with("the cat"));
    if (!whole.ends_with('\xff') && each.text.size() + 7 == whole.size()) {
      EXPECT_EQ("the cat" + each.text, whole);
    }
    EXPECT_LE(each.text.size() + 7, whole.size());
  }
}

TEST_F(TextGenerators, StreamsEveryTextAsItIsWritten) {
  const TextGenerator generator = TextGenerator::load(folder_ / "model");
  GenerationConfig how = generator.defaults();
  for (const bool draws : {true, false}) {
    how.sample = draws;
    how.search = {.beam = 1};
    std::mutex lock;
    std::map<size_t, std::vector<std::string>> heard;
    const auto written = generator.write(prompts_, how, [&](size_t prompt, std::string_view text) {
      const std::lock_guard guard(lock);
      heard[prompt].emplace_back(text);
    });
    for (size_t n = 0; n < prompts_.size(); ++n) {
      std::string all;
      for (const std::string& piece : heard[n]) all += piece;
      EXPECT_EQ(all, written[n][0].text);
      if (all.size() > 20) {
        EXPECT_GT(heard[n].size(), 3U);
      }
    }
  }
}

TEST_F(TextGenerators, APromptAloneAndAmongOthersGivesTheSame) {
  const TextGenerator generator = TextGenerator::load(folder_ / "model");
  GenerationConfig how = generator.defaults();
  const auto all = generator.write(prompts_, how);
  EXPECT_EQ(generator(prompts_[0]), all[0][0].text);
  how.sampling.first_sentence = 2;
  EXPECT_EQ(generator.write({prompts_[2]}, how)[0][0].text, all[2][0].text);
}

TEST_F(TextGenerators, RefusesWhatItCannotDo) {
  EXPECT_EQ(refusal_of([&] { TextGenerator::load(folder_ / "none"); }).kind, ErrorKind::io);
  const TextGenerator generator = TextGenerator::load(folder_ / "model");
  EXPECT_TRUE(refusal_of([&] { generator("a \xff b"); }).says("byte 3 of"));
  GenerationConfig how = generator.defaults();
  how.sampling.samples = 2;
  EXPECT_TRUE(refusal_of([&] { generator.write({"a"}, how, [](size_t, std::string_view) {}); }).says("expected 1"));
  EXPECT_TRUE(refusal_of([&] { generator(std::string(200, 'z')); }).says("tokens; expected at most 30"));
}

}  // namespace
}  // namespace mh
