// Validation against its definition: every token's probability taken alone.
#include "multihead/tasks/translation.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/generate/tiny_model.h"
#include "tests/harness/temporary_folder.h"
#include "tests/tasks/pair_stepper.h"

namespace mh {
namespace {

class Validations : public testing::Test {
 protected:
  Validations() {
    put_text(folder_ / "pairs.tsv", "the cat\tdie Katze\na dog\tein Hund\nthe dog sat\tder Hund sass da\ncat\tKatze\n");
    text_ = PairText({.source = folder_ / "pairs.tsv"});
    tokenizer_ = train_bpe({"the cat a dog sat die Katze ein der Hund sass da"}, {.vocabulary = 270});
    data_ = Dataset(text_, tokenizer_, 40);
  }

  // The mean of -log p over all target tokens, ends included.
  double by_definition(const Transformer& model) const {
    double sum = 0;
    int64_t tokens = 0;
    for (int64_t n = 0; n < data_.size(); ++n) {
      const std::vector<int32_t> source(data_.source(n).begin(), data_.source(n).end());
      std::vector<int32_t> target(data_.target(n).begin(), data_.target(n).end()), written;
      target.push_back(model.config().end);
      for (const int32_t token : target) {
        sum -= test::log_p(model, source, written)[static_cast<size_t>(token)];
        written.push_back(token);
        ++tokens;
      }
    }
    return sum / static_cast<double>(tokens);
  }

  Corpus corpus(const PairText& text, const Dataset& data) const {
    return {.tokenizer = tokenizer_, .train = {}, .valid = data, .valid_text = text};
  }

  TemporaryFolder folder_;
  PairText text_;
  Tokenizer tokenizer_;
  Dataset data_;
};

TEST_F(Validations, TheLossIsTheMeanOverAllTokensHoweverTheyAreBatched) {
  Transformer model = test::tiny_model(tokenizer_.size());
  const double wanted = by_definition(model);
  for (const int64_t tokens : {1, 9, 4096}) {
    const TranslationScores v = score_translation(model, corpus(text_, data_), {.tokens_per_batch = tokens});
    EXPECT_NEAR(v.loss, wanted, 1e-5 * wanted) << tokens;  // a hundred roundings of f32
    EXPECT_EQ(v.perplexity, std::exp(v.loss));
    EXPECT_EQ(v.bleu, -1);
    EXPECT_EQ(v.chrf, -1);
  }
}

TEST_F(Validations, AModelThatGivesNaNIsNotTranslatedWith) {
  Transformer model = test::tiny_model(tokenizer_.size());
  for (const auto& param : model.params().all()) param->value.data<float>()[0] = NAN;
  const TranslationScores v = score_translation(model, corpus(text_, data_), {.sentences = 2});
  EXPECT_TRUE(std::isnan(v.loss));
  EXPECT_EQ(v.bleu, -1);
}

// A model that knows the four pairs by heart: what it translates is known.
class LearnedByHeart : public Validations {
 protected:
  LearnedByHeart() : stepper_(options()) {
    std::vector<SentencePair> pairs;
    for (int64_t n = 0; n < data_.size(); ++n) {
      const auto source = data_.source(n), target = data_.target(n);
      pairs.push_back({{source.begin(), source.end()}, {target.begin(), target.end()}});
    }
    std::vector<const SentencePair*> all;
    for (const SentencePair& pair : pairs) all.push_back(&pair);
    const PairBatch batch = pair_batch(all, options().model);
    double nll = 1;
    for (int n = 0; n < 400 && nll > 0.02; ++n) nll = stepper_.step({batch}).nll;
    EXPECT_LT(nll, 0.05);
  }
  PairStepperOptions options() const {
    PairStepperOptions out{.schedule = {.kind = ScheduleKind::constant, .rate = 3e-3, .warmup = 5}, .smoothing = 0};
    out.model = {.vocabulary = tokenizer_.size(),
                 .width = 32,
                 .heads = 2,
                 .feed_forward = 48,
                 .encoder_layers = 1,
                 .decoder_layers = 1,
                 .dropout = 0,
                 .max_length = 64};
    return out;
  }
  TranslationScores judged_by(const std::string& text, int64_t max_length = 40, int64_t sentences = 100) {
    put_text(folder_ / "judge.tsv", text);
    const PairText pairs({.source = folder_ / "judge.tsv"});
    return score_translation(stepper_.model(), corpus(pairs, Dataset(pairs, tokenizer_, max_length)),
                             {.sentences = sentences});
  }
  PairStepper stepper_;
};

TEST_F(LearnedByHeart, TranslationsAreScoredAgainstTheirOwnReferences) {
  const std::string four = text_of(folder_ / "pairs.tsv"), word = " the cat the cat the cat the cat the cat";
  EXPECT_NEAR(judged_by(four).bleu, 100, 1e-9);
  EXPECT_NEAR(judged_by(four).chrf, 100, 1e-9);
  // Pairs that are dropped for their length shift nothing.
  const TranslationScores v = judged_by("cat" + word + word + "\tder Hund\n" + four, 20);
  EXPECT_NEAR(v.bleu, 100, 1e-9);
  EXPECT_NEAR(v.chrf, 100, 1e-9);
  EXPECT_LT(v.loss, 0.1);
}

// One word of nine differs: 8 of 9 words, 3 of 5 pairs, 0 of 2 triples (smoothed to 1/4), 0 of 1 quadruple (1/4) match;
// as long as the references. chrF by its formula over the characters, in Python.
TEST_F(LearnedByHeart, ScoresAreThoseOfTheFormulas) {
  const TranslationScores v =
      judged_by("the cat\tdie Katze\na dog\tein Hund\nthe dog sat\tder Hund lag da\ncat\tKatze\n");
  EXPECT_NEAR(v.bleu, std::pow(100 * 8 / 9.0 * 60 * 25 * 25, 0.25), 1e-6);
  EXPECT_NEAR(v.chrf, 76.05685393704738, 1e-6);
}

TEST_F(LearnedByHeart, AsManyAreTranslatedAsAreAskedFor) {
  const std::string text = "the dog sat\tder Hund sass da\ncat\tder Hund sass da\n";
  EXPECT_NEAR(judged_by(text, 40, 1).bleu, 100, 1e-9);
  EXPECT_LT(judged_by(text, 40, 2).bleu, 90);
}

}  // namespace
}  // namespace mh
