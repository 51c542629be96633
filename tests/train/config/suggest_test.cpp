// What is suggested for data of every size, and that `multihead train` takes it.
#include "multihead/train/config/suggest.h"

#include <gtest/gtest.h>

#include "multihead/tasks/data/dataset.h"
#include "tests/harness/refusal.h"
#include "tests/harness/temporary_folder.h"

namespace mh {
namespace {

class Suggest : public testing::Test {
 protected:
  // Pairs of four and five words.
  TrainConfig given(int64_t pairs) {
    std::string text;
    for (int64_t i = 0; i < pairs; ++i) text += fmt::format("the house {} is small\tdas Haus {} ist klein ja\n", i, i);
    put_text(folder_ / "pairs.en-de.tsv", text);
    TrainConfig out;
    out.data.train = folder_ / "pairs.en-de.tsv";
    return out;
  }
  TrainConfig taken(const Suggestion& suggestion) {
    put_text(folder_ / "my.toml", suggestion.toml());
    return read_config(folder_ / "my.toml");
  }
  TemporaryFolder folder_;
};

TEST_F(Suggest, TheFileReadsBackAsWhatWasSuggested) {
  const Suggestion suggestion = suggest(given(1000));
  TrainConfig expected = suggestion.config;
  expected.data.max_length = expected.model.max_length;  // as read_config settles it
  EXPECT_EQ(config_changes(expected, taken(suggestion)), std::vector<std::string>{});
  EXPECT_EQ(taken(suggestion).train.output, "models/pairs");
}

TEST_F(Suggest, EveryValueStandsBehindItsReason) {
  const Suggestion suggestion = suggest(given(1000));
  const std::string text = suggestion.toml();
  EXPECT_TRUE(text.starts_with("# Suggested for the 1000 pairs of ")) << text;
  EXPECT_GE(suggestion.reasons.size(), 10u);
  for (const auto& [key, reason] : suggestion.reasons) {
    const size_t at = text.find("# " + reason + "\n" + key.substr(key.find('.') + 1) + " = ");
    EXPECT_NE(at, std::string::npos) << key << ": " << reason << "\n" << text;
  }
}

TEST_F(Suggest, TheNearestSizeThatWasMeasuredDecides) {
  EXPECT_EQ(advice_for(0).pairs, 1000);
  EXPECT_EQ(advice_for(2200).pairs, 1000);  // below √(1000 · 5000) = 2236
  EXPECT_EQ(advice_for(2300).pairs, 5000);
  EXPECT_EQ(advice_for(29'000).pairs, 29'000);
  EXPECT_EQ(advice_for(69'000).pairs, 29'000);  // below √(29000 · 166663) = 69521
  EXPECT_EQ(advice_for(70'000).pairs, 166'663);
  EXPECT_EQ(advice_for(100'000'000).pairs, 166'663);
}

TEST_F(Suggest, MoreDataGetMoreTokensLessDropoutFewerEpochs) {
  const SizeAdvice *few = &advice_for(1000), *many = &advice_for(100'000);
  EXPECT_LT(few->vocabulary, many->vocabulary);
  EXPECT_GT(few->dropout, many->dropout);
  EXPECT_GT(few->epochs, many->epochs);
  EXPECT_LT(few->tokens_per_batch, many->tokens_per_batch);
}

TEST_F(Suggest, WarmUpFollowsTheStepsOfTheRun) {
  const TrainConfig config = taken(suggest(given(1000), {"data.tokens_per_batch=100", "train.epochs=10"}));
  const PairText text({.source = config.data.train});
  std::vector<std::string> lines;
  for (int64_t i = 0; i < text.size(); ++i) {
    lines.emplace_back(text.source(i));
    lines.emplace_back(text.target(i));
  }
  const Tokenizer tokenizer = train_bpe(lines, {.vocabulary = static_cast<int32_t>(config.tokenizer.vocabulary)});
  // Tokens of all pairs / 100 a batch, ten times.
  const double steps = static_cast<double>(Dataset(text, tokenizer, 256).target_tokens()) / 100 * 10;
  EXPECT_NEAR(static_cast<double>(config.optimizer.warmup), steps / 10, 0.02 * steps / 10);
}

TEST_F(Suggest, ValidationPairsAreHeldOutWhereNoneAreNamed) {
  EXPECT_EQ(suggest(given(1000)).config.data.hold_out, 50);
  EXPECT_EQ(suggest(given(19)).config.data.hold_out, 0);
  EXPECT_EQ(suggest(given(30'000), {"tokenizer.vocabulary=300"}).config.data.hold_out, 1000);
  const Suggestion named = suggest(given(1000), {"data.valid=valid.tsv"});
  EXPECT_EQ(named.config.data.hold_out, 0);
  EXPECT_EQ(taken(named).data.valid, "valid.tsv");
}

TEST_F(Suggest, FewPairsKeepTheLastWeights) {
  EXPECT_GT(suggest(given(1000)).config.train.validate_every, 100'000);  // steps: never before the end
  EXPECT_EQ(suggest(given(20'000), {"tokenizer.vocabulary=300"}).config.train.validate_every, 0);
}

TEST_F(Suggest, WhatIsSetStays) {
  const TrainConfig config =
      taken(suggest(given(1000), {"model.dropout=0.05", "optimizer.warmup=7", "train.output=x"}));
  EXPECT_FLOAT_EQ(config.model.dropout, 0.05F);
  EXPECT_EQ(config.optimizer.warmup, 7);
  EXPECT_EQ(config.train.output, "x");
}

TEST_F(Suggest, SaysWhereNothingWasMeasured) {
  EXPECT_EQ(suggest(given(1000)).toml().find("More pairs"), std::string::npos);
  std::string text;
  for (int i = 0; i < 340'000; ++i) text += "a\tb\n";
  put_text(folder_ / "many.tsv", text);
  const std::string said = suggest({.data = {.train = folder_ / "many.tsv"}}, {"tokenizer.vocabulary=300"}).toml();
  EXPECT_NE(said.find("# More pairs than any that were measured: these values are for 166663."), std::string::npos);
}

TEST_F(Suggest, RefusesWhatTrainingWould) {
  EXPECT_TRUE(refusal_of([&] { suggest(TrainConfig{.data = {.train = folder_ / "none.tsv"}}); }).says("none.tsv"));
  EXPECT_TRUE(refusal_of([&] { suggest(given(10), {"data.valid=x", "data.hold_out=3"}); }).says("data.hold_out is 3"));
}

TEST_F(Suggest, KnowsSentencePairsAlone) {
  EXPECT_TRUE(
      refusal_of([&] { suggest(given(10), {"task.kind=language_model"}); }).says("measured with sentence pairs"));
}

}  // namespace
}  // namespace mh
