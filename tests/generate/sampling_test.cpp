// Sampling: the distribution drawn from, what the filters leave, and that a draw depends on its place alone.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

#include "multihead/base/error.h"
#include "multihead/base/parallel.h"
#include "multihead/generate/sampler.h"
#include "multihead/generate/search.h"
#include "tests/generate/tiny_model.h"

namespace mh {
namespace {

using detail::draw;
using test::random_sources;
using test::tiny_model;

const std::vector<float> kLogits{1.0F, 2.0F, 0.0F, 2.0F, -INFINITY, -1.0F};

// How often each token comes, drawing at the middles of n equal parts of [0, 1): off by at most one part each.
std::vector<double> shares(const SamplingOptions& options, int n = 10000) {
  std::vector<double> out(kLogits.size());
  for (int i = 0; i < n; ++i) out[draw(options, kLogits.data(), 6, (i + 0.5) / n).token] += 1.0 / n;
  return out;
}

std::vector<double> softmax_of(std::vector<double> logits) {
  double sum = 0;
  for (double& x : logits) sum += x = std::exp(x);
  for (double& x : logits) x /= sum;
  return logits;
}

void expect_shares(const SamplingOptions& options, const std::vector<double>& logits) {
  const std::vector<double> found = shares(options), wanted = softmax_of(logits);
  for (size_t n = 0; n < wanted.size(); ++n) EXPECT_NEAR(found[n], wanted[n], 2e-4) << "token " << n;
}

TEST(Draw, FollowsTheTemperature) {
  expect_shares({}, {1, 2, 0, 2, -INFINITY, -1});
  expect_shares({.temperature = 0.5F}, {2, 4, 0, 4, -INFINITY, -2});
}

TEST(Draw, KeepsWhatTheFiltersLeave) {
  expect_shares({.top_k = 3}, {1, 2, -INFINITY, 2, -INFINITY, -INFINITY});
  expect_shares({.top_k = 1}, {-INFINITY, 2, -INFINITY, -INFINITY, -INFINITY, -INFINITY});  // of equals the smaller
  // Shares are 0.38, 0.38, 0.14, 0.05, 0.02: two reach 0.7, three 0.8.
  expect_shares({.top_p = 0.7}, {-INFINITY, 2, -INFINITY, 2, -INFINITY, -INFINITY});
  expect_shares({.top_p = 0.8}, {1, 2, -INFINITY, 2, -INFINITY, -INFINITY});
  // Among the best two alone one reaches a half.
  expect_shares({.top_k = 2, .top_p = 0.5}, {-INFINITY, 2, -INFINITY, -INFINITY, -INFINITY, -INFINITY});
  expect_shares({.min_p = 0.2}, {1, 2, -INFINITY, 2, -INFINITY, -INFINITY});  // e^-1 stays, e^-2 goes
}

TEST(Draw, KeepsATokenExactlyMinPTimesAsProbableAsTheBest) {
  const double ratio = std::exp(-1.0);  // of token 0 to tokens 1 and 3
  expect_shares({.min_p = ratio}, {1, 2, -INFINITY, 2, -INFINITY, -INFINITY});
  expect_shares({.min_p = std::nextafter(ratio, 1.0)}, {-INFINITY, 2, -INFINITY, 2, -INFINITY, -INFINITY});
  expect_shares({.min_p = 1}, {-INFINITY, 2, -INFINITY, 2, -INFINITY, -INFINITY});
}

TEST(Draw, StopsAtExactlyTopP) {
  const std::vector<float> equal(4, 1.0F);
  std::set<int32_t> drawn;
  for (int n = 0; n < 100; ++n) drawn.insert(draw({.top_p = 0.5}, equal.data(), 4, (n + 0.5) / 100).token);
  EXPECT_EQ(drawn, (std::set<int32_t>{0, 1}));
}

TEST(Draw, GivesTheProbabilityAmongAllTokens) {
  const std::vector<double> p = softmax_of({1, 2, 0, 2, -INFINITY, -1});
  for (const double u : {0.0, 0.3, 0.6, 0.999999999}) {
    const auto drawn = draw({.temperature = 2, .top_k = 3}, kLogits.data(), 6, u);
    EXPECT_NEAR(drawn.log_p, std::log(p[drawn.token]), 1e-6);
  }
}

TEST(Draw, RefusesLogitsWithoutProbabilities) {
  const std::vector<float> nan{1, NAN, 2}, none{-INFINITY, -INFINITY, -INFINITY};
  EXPECT_THROW(draw({}, nan.data(), 3, 0.5), Error);
  EXPECT_THROW(draw({}, none.data(), 3, 0.5), Error);
}

TEST(Sample, FirstTokensFollowTheModel) {
  const Transformer model = tiny_model(6, 2);
  const std::vector<int32_t> source{3, 5, 4};
  const int64_t samples = 1000;
  std::map<int32_t, double> share;
  const auto drawn = sample(model, {source}, {.samples = samples, .rules = {.max_length = 1}});
  for (const Hypothesis& hypothesis : drawn.at(0))
    share[hypothesis.ended ? model.config().end : hypothesis.ids.at(0)] += 1.0 / samples;
  const std::vector<double> wanted = test::log_p(model, source, {});
  for (int32_t v = 0; v < 6; ++v) {
    const double p = std::exp(wanted[v]);
    EXPECT_NEAR(share[v], p, 5 * std::sqrt(p * (1 - p) / samples)) << "token " << v;
  }
}

TEST(Sample, ADrawDependsOnItsPlaceAlone) {
  Transformer model = tiny_model(40, 1.5);
  model.pack();
  const auto sources = random_sources(12, 9, 40);
  SamplingOptions options{.samples = 3, .temperature = 0.8F, .top_p = 0.9, .seed = 5};
  const int before = threads();
  set_threads(1);
  const auto whole = sample(model, sources, options);
  for (const int count : {1, 3}) {
    set_threads(count);
    for (size_t n = 0; n < sources.size(); ++n) {
      options.first_sentence = n;
      options.batch.tokens = 1;
      const auto alone = sample(model, {sources[n]}, options).at(0);
      ASSERT_EQ(alone.size(), 3u);
      for (size_t s = 0; s < 3; ++s) {
        EXPECT_EQ(alone[s].ids, whole[n][s].ids);
        EXPECT_EQ(alone[s].score, whole[n][s].score);
      }
    }
  }
  set_threads(before);
  options.first_sentence = 0;
  options.seed = 6;
  bool differs = false;
  const auto other = sample(model, sources, options);
  for (size_t n = 0; n < sources.size(); ++n) differs |= other[n][0].ids != whole[n][0].ids;
  EXPECT_TRUE(differs);
}

// Tokens of equal logits: a token is the draw itself, in steps of 1/64.
std::vector<int32_t> drawn_tokens(const SamplingOptions& options, uint64_t sentence, size_t sample = 0) {
  const std::vector<float> logits(64 * static_cast<size_t>(options.samples), 0.0F);
  const std::vector<int32_t> ends{64};
  detail::Sampler sampler(options, sentence, 200, ends);
  for (int step = 0; step < 200; ++step) sampler.advance(logits.data(), 64);
  return sampler.results().at(sample).ids;
}

TEST(Sample, EveryStepDrawsAnew) {
  const std::vector<int32_t> tokens = drawn_tokens({}, 0);
  ASSERT_EQ(tokens.size(), 200u);
  std::map<int32_t, int> counts;
  int repeats = 0;
  for (size_t n = 0; n < tokens.size(); ++n) {
    ++counts[tokens[n]];
    repeats += n > 0 && tokens[n] == tokens[n - 1];
  }
  // Uniform draws: 200/64 of each in the mean, 3.1 ± 1.8; neighbours equal 199/64 times, 3.1 ± 1.8.
  EXPECT_GT(counts.size(), 50u);
  for (const auto& [token, count] : counts) EXPECT_LE(count, 12) << token;
  EXPECT_LE(repeats, 12);
}

TEST(Sample, SeedSentenceAndSampleDrawApart) {
  const auto equal = [](const std::vector<int32_t>& a, const std::vector<int32_t>& b) {
    int count = 0;
    for (size_t n = 0; n < a.size(); ++n) count += a[n] == b[n];
    return count;
  };
  const std::vector<int32_t> tokens = drawn_tokens({.samples = 2}, 0);
  EXPECT_EQ(equal(tokens, drawn_tokens({.samples = 2}, 0)), 200);
  EXPECT_LE(equal(tokens, drawn_tokens({.samples = 2}, 0, 1)), 14);
  EXPECT_LE(equal(tokens, drawn_tokens({.samples = 2}, 1)), 14);
  EXPECT_LE(equal(tokens, drawn_tokens({.samples = 2, .seed = 2}, 0)), 14);
}

TEST(Sample, FollowsTheRules) {
  const Transformer model = tiny_model(12, 2);
  const auto sources = random_sources(6, 6, 12);
  int short_ones = 0, repeated = 0;
  const auto repeats = [](const std::vector<int32_t>& ids) {
    return std::set<int32_t>(ids.begin(), ids.end()).size() < ids.size();
  };
  for (const auto& samples : sample(model, sources, {.samples = 8})) {
    for (const Hypothesis& hypothesis : samples) {
      short_ones += hypothesis.ids.size() < 6;
      repeated += repeats(hypothesis.ids);
    }
  }
  EXPECT_GT(short_ones, 0);  // else the rules below would change nothing
  EXPECT_GT(repeated, 0);
  for (const auto& samples : sample(model, sources, {.samples = 8, .rules = {.min_length = 6}}))
    for (const Hypothesis& hypothesis : samples) EXPECT_GE(hypothesis.ids.size(), 6u);
  for (const auto& samples : sample(model, sources, {.samples = 8, .rules = {.max_length = 11, .no_repeat_ngram = 1}}))
    for (const Hypothesis& hypothesis : samples) EXPECT_FALSE(repeats(hypothesis.ids));
  for (const auto& samples : sample(model, sources, {.samples = 8, .rules = {.max_length = 4}}))
    for (const Hypothesis& hypothesis : samples) EXPECT_LE(hypothesis.token_scores.size(), 4u);
}

TEST(Sample, NumbersOfSentencesMayBeGiven) {
  const Transformer model = tiny_model(40, 1.5);
  const std::vector<std::vector<int32_t>> sources(3, {5, 6, 7});
  const auto counted = sample(model, sources, {.first_sentence = 4});
  const auto given = sample(model, sources, {.numbers = {6, 4, 5}});
  EXPECT_EQ(given[0][0].ids, counted[2][0].ids);
  EXPECT_EQ(given[1][0].ids, counted[0][0].ids);
  EXPECT_EQ(given[2][0].ids, counted[1][0].ids);
  EXPECT_NE(counted[0][0].ids, counted[1][0].ids);
  EXPECT_THROW(sample(model, sources, {.numbers = {1}}), Error);
}

TEST(Sample, ScoresAreTheModels) {
  const Transformer model = tiny_model(12, 2);
  const std::vector<int32_t> source{4, 7};
  const auto drawn = sample(model, {source}, {.samples = 4, .temperature = 3});
  for (const Hypothesis& hypothesis : drawn.at(0)) {
    std::vector<int32_t> ids = hypothesis.ids, written;
    if (hypothesis.ended) ids.push_back(model.config().end);
    ASSERT_EQ(hypothesis.token_scores.size(), ids.size());
    double sum = 0;
    for (size_t n = 0; n < ids.size(); ++n) {
      const double wanted = test::log_p(model, source, written)[ids[n]];
      EXPECT_NEAR(hypothesis.token_scores[n], wanted, 1e-4 * (1 + std::abs(wanted)));
      written.push_back(ids[n]);
      sum += wanted;
    }
    EXPECT_NEAR(hypothesis.score, sum, 1e-4 * (1 + std::abs(sum)));
  }
}

TEST(Sample, RefusesWhatItCannotDo) {
  const Transformer model = tiny_model(10);
  for (const SamplingOptions& wrong :
       {SamplingOptions{.samples = 0}, SamplingOptions{.temperature = 0}, SamplingOptions{.top_k = -1},
        SamplingOptions{.top_p = 0}, SamplingOptions{.top_p = 1.1}, SamplingOptions{.min_p = 1.1},
        SamplingOptions{.rules = {.max_length = 3, .min_length = 4}}}) {
    EXPECT_THROW(sample(model, {{3}}, wrong), Error);
  }
}

}  // namespace
}  // namespace mh
