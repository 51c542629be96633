// Search and sampling over a decoder-only model, against its whole pass, and over a Generator of the test's own.
#include "multihead/generate/generator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "multihead/generate/search.h"
#include "tests/harness/refusal.h"

namespace mh {
namespace {

DecoderOnly continuing_model(int32_t begin = 1) {
  DecoderOnly model({.vocabulary = 30,
                     .width = 24,
                     .heads = 3,
                     .feed_forward = 32,
                     .layers = 2,
                     .tied = false,
                     .max_length = 24,
                     .begin = begin},
                    std::make_shared<ParamStore>());
  for (const auto& param : model.params().all()) {
    if (param->name != "output.weight") continue;
    for (int64_t n = 0; n < param->value.count(); ++n) param->value.data<float>()[n] *= 3;
  }
  return model;
}

// log p of every token behind `text`, by a pass over the whole.
std::vector<double> next_log_p(const DecoderOnly& model, std::vector<int32_t> text) {
  if (model.config().begin >= 0) text.insert(text.begin(), model.config().begin);
  Pass pass = Pass::inference();
  const Tensor logits = model.logits(token_batch({text}), pass);
  std::vector<double> out;
  double sum = 0;
  for (int64_t v = 0; v < model.config().vocabulary; ++v) {
    out.push_back(logits.item({logits.size(0) - 1, v}));
    sum += std::exp(out.back());
  }
  for (double& x : out) x -= std::log(sum);
  return out;
}

const Prompts kPrompts{{5, 6, 7, 8, 9, 10, 11}, {}, {12, 13}, {14}};

TEST(DecoderOnlyGenerator, GreedySearchTakesTheBestTokenOfTheWholePass) {
  for (const bool packed : {false, true}) {
    DecoderOnly model = continuing_model();
    if (packed) model.pack();
    const auto written = search(model, kPrompts, {.beam = 1});
    for (size_t n = 0; n < kPrompts.size(); ++n) {
      std::vector<int32_t> text = kPrompts[n], expected;
      bool ended = false;
      while (text.size() < 23 && !ended) {
        const std::vector<double> p = next_log_p(model, text);
        const auto best = static_cast<int32_t>(std::max_element(p.begin(), p.end()) - p.begin());
        ended = best == model.config().end;
        if (!ended) expected.push_back(best);
        text.push_back(best);
      }
      EXPECT_EQ(written[n][0].ids, expected) << n;
      EXPECT_EQ(written[n][0].ended, ended) << n;
    }
  }
}

TEST(DecoderOnlyGenerator, ScoresOfBeamsAndSamplesAreThoseOfTheWholePass) {
  const DecoderOnly model = continuing_model();
  const auto beams = search(model, kPrompts, {.beam = 4, .n_best = 3, .rules = {.max_length = 6}});
  const auto samples = sample(model, kPrompts, {.samples = 3, .rules = {.max_length = 6}});
  for (const auto& all : {beams, samples}) {
    for (size_t n = 0; n < kPrompts.size(); ++n) {
      EXPECT_EQ(all[n].size(), 3U);
      for (const Hypothesis& h : all[n]) {
        std::vector<int32_t> text = kPrompts[n], tokens = h.ids;
        if (h.ended) tokens.push_back(model.config().end);
        ASSERT_EQ(tokens.size(), h.token_scores.size());
        EXPECT_LE(tokens.size(), 6U);
        for (size_t t = 0; t < tokens.size(); ++t) {
          EXPECT_NEAR(h.token_scores[t], next_log_p(model, text)[static_cast<size_t>(tokens[t])], 1e-4);
          text.push_back(tokens[t]);
        }
      }
    }
  }
}

TEST(DecoderOnlyGenerator, APromptAloneIsContinuedAsInABatch) {
  const DecoderOnly model = continuing_model();
  const auto together = search(model, kPrompts, {.beam = 3});
  for (size_t n = 0; n < kPrompts.size(); ++n)
    EXPECT_EQ(together[n][0].ids, search(model, {kPrompts[n]}, {.beam = 3})[0][0].ids) << n;
}

TEST(DecoderOnlyGenerator, WithoutABeginningAPromptMustHoldAToken) {
  const DecoderOnly model = continuing_model(-1);
  EXPECT_TRUE(refusal_of([&] { search(model, {{}}); }).says("source 0 has 0 tokens; expected 1 or more"));
  EXPECT_TRUE(refusal_of([&] { search(model, {std::vector<int32_t>(24, 4)}); }).says("expected at most 23"));
  EXPECT_LE(search(model, {std::vector<int32_t>(23, 4)}, {.beam = 1})[0][0].token_scores.size(), 1U);
}

// Counts down from the prompt's only token to 3, then ends: no weights, no tensors kept.
class CountDown : public Generator {
 public:
  struct Places : State {
    void choose(const std::vector<int32_t>& parents, const std::vector<int64_t>&) override { rows = parents.size(); }
    int64_t hypotheses() const override { return static_cast<int64_t>(rows); }
    size_t rows = 0;
  };
  Limits limits() const override { return {.vocabulary = 16, .fewest = 1, .most = 1, .end = 2}; }
  int64_t most_written(int64_t) const override { return 20; }
  int64_t room(const std::vector<int64_t>&, int64_t, int64_t) const override { return 0; }
  std::unique_ptr<State> begin(const Prompts& prompts, int64_t, Pass&) const override {
    auto state = std::make_unique<Places>();
    state->rows = prompts.size();
    for (const auto& prompt : prompts) state->first.push_back(prompt[0]);
    return state;
  }
  Tensor step(State&, const std::vector<int32_t>& ids, Pass&) const override {
    const Tensor rows = zeros({static_cast<int64_t>(ids.size()), 16});
    for (size_t n = 0; n < ids.size(); ++n) rows.data<float>()[16 * n + static_cast<size_t>(ids[n] + 15) % 16] = 20;
    return rows;
  }
  Tensor logits(const Tensor& rows) const override { return rows; }
  TopK top(const Tensor& rows, int64_t k) const override { return top_k(rows, k); }
};

TEST(Generator, AnyOneCanBeSearchedAndSampled) {
  const auto found = search(CountDown(), {{7}, {5}}, {.beam = 2});
  EXPECT_EQ(found[0][0].ids, (std::vector<int32_t>{6, 5, 4, 3}));
  EXPECT_EQ(found[1][0].ids, (std::vector<int32_t>{4, 3}));
  EXPECT_TRUE(found[1][0].ended);
  EXPECT_EQ(sample(CountDown(), {{7}}, {.temperature = 0.1F})[0][0].ids, (std::vector<int32_t>{6, 5, 4, 3}));
}

}  // namespace
}  // namespace mh
