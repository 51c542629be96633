// Beam search against its definition: every hypothesis enumerated, every prefix computed anew.
#include "multihead/generate/search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>
#include <set>

#include "multihead/base/error.h"
#include "multihead/base/parallel.h"
#include "tests/generate/tiny_model.h"
#include "tests/harness/refusal.h"
#include "tests/harness/rungs.h"

namespace mh {
namespace {

using test::log_p;
using test::random_sources;
using test::tiny_model;

struct Plain {
  std::vector<int32_t> ids;  // </s> counted
  double sum = 0, score = 0;
};

// The formulas of options.h, written out anew.
double length_divisor(const LengthPenalty& penalty, int64_t length) {
  const double tokens = static_cast<double>(length);
  if (const auto* power = std::get_if<PowerPenalty>(&penalty)) return std::pow(tokens, power->alpha);
  return std::pow((tokens + 5) / 6, std::get<GnmtPenalty>(penalty).alpha);
}

// All that can be written with up to `limit` tokens, best first.
std::vector<Plain> everything(const Transformer& model, const std::vector<int32_t>& source, int64_t limit,
                              const LengthPenalty& penalty) {
  std::vector<Plain> open{{}}, done;
  for (int64_t length = 1; length <= limit; ++length) {
    std::vector<Plain> next;
    for (const Plain& prefix : open) {
      const std::vector<double> rows = log_p(model, source, prefix.ids);
      for (size_t v = 0; v < rows.size(); ++v) {
        Plain longer = prefix;
        longer.ids.push_back(static_cast<int32_t>(v));
        longer.sum += rows[v];
        longer.score = longer.sum / length_divisor(penalty, length);
        const bool ends = static_cast<int32_t>(v) == model.config().end || length == limit;
        (ends ? done : next).push_back(longer);
      }
    }
    open = next;
  }
  std::sort(done.begin(), done.end(), [](const Plain& a, const Plain& b) { return a.score > b.score; });
  return done;
}

// The definition in options.h, word by word, without stopping early.
std::vector<Plain> defined(const Transformer& model, const std::vector<int32_t>& source, int64_t limit,
                           const SearchOptions& o) {
  const size_t beam = static_cast<size_t>(o.beam);
  std::vector<Plain> live{{}}, finished;
  size_t ended = 0;
  for (int64_t length = 1; !live.empty() && length <= limit; ++length) {
    std::vector<Plain> extensions;
    for (const Plain& prefix : live) {
      const std::vector<double> rows = log_p(model, source, prefix.ids);
      for (size_t v = 0; v < rows.size(); ++v) {
        extensions.push_back(prefix);
        extensions.back().ids.push_back(static_cast<int32_t>(v));
        extensions.back().sum += rows[v];
        extensions.back().score = extensions.back().sum / length_divisor(o.penalty, length);
      }
    }
    std::stable_sort(extensions.begin(), extensions.end(),
                     [](const Plain& a, const Plain& b) { return a.sum > b.sum; });
    live.clear();
    for (size_t rank = 0; rank < extensions.size(); ++rank) {
      const bool ends = extensions[rank].ids.back() == model.config().end;
      if (ends && rank < beam) {
        finished.push_back(extensions[rank]);
        ++ended;
      }
      if (!ends && live.size() < beam) live.push_back(extensions[rank]);
    }
    if (static_cast<double>(ended) >= static_cast<double>(o.beam) * o.patience) live.clear();
  }
  finished.insert(finished.end(), live.begin(), live.end());
  std::stable_sort(finished.begin(), finished.end(), [](const Plain& a, const Plain& b) { return a.score > b.score; });
  if (finished.size() > static_cast<size_t>(o.n_best)) finished.resize(static_cast<size_t>(o.n_best));
  return finished;
}

void expect_same(const std::vector<Hypothesis>& found, const std::vector<Plain>& wanted, int32_t end) {
  ASSERT_EQ(found.size(), wanted.size());
  for (size_t n = 0; n < found.size(); ++n) {
    std::vector<int32_t> ids = found[n].ids;
    if (found[n].ended) ids.push_back(end);
    EXPECT_EQ(ids, wanted[n].ids) << n;
    EXPECT_NEAR(found[n].score, wanted[n].score, 1e-4 * (1 + std::abs(wanted[n].score)));
    EXPECT_EQ(found[n].token_scores.size(), ids.size());
    double sum = 0;
    for (const float score : found[n].token_scores) sum += score;
    EXPECT_NEAR(sum, wanted[n].sum, 1e-4 * (1 + std::abs(wanted[n].sum)));
  }
}

const LengthPenalty kPenalties[] = {PowerPenalty{1}, PowerPenalty{0}, PowerPenalty{0.5}, GnmtPenalty{0.6}};

TEST(LengthPenalty, HasTheValuesOfItsFormula) {
  EXPECT_DOUBLE_EQ(divisor(PowerPenalty{1}, 7), 7);
  EXPECT_DOUBLE_EQ(divisor(PowerPenalty{0}, 7), 1);
  EXPECT_DOUBLE_EQ(divisor(PowerPenalty{0.5}, 9), 3);
  EXPECT_DOUBLE_EQ(divisor(GnmtPenalty{2}, 1), 1);
  EXPECT_DOUBLE_EQ(divisor(GnmtPenalty{2}, 7), 4);
  EXPECT_DOUBLE_EQ(divisor(GnmtPenalty{0.5}, 49), 3);
  EXPECT_NEAR(divisor(GnmtPenalty{0.6}, 7), 1.515716566510398, 1e-14);  // 2^0.6
}

TEST(Search, AWideBeamFindsTheBestOfAll) {
  const Transformer model = tiny_model(4);
  const std::vector<int32_t> source{3, 3, 1};
  for (const LengthPenalty& penalty : kPenalties) {
    const SearchOptions options{.beam = 40, .n_best = 40, .penalty = penalty, .rules = {.max_length = 3}};
    std::vector<Plain> all = everything(model, source, 3, penalty);
    ASSERT_EQ(all.size(), 1 + 3 + 9 * 4u);
    expect_same(search(model, {source}, options).at(0), all, model.config().end);
  }
}

TEST(Search, FollowsItsDefinition) {
  const Transformer model = tiny_model(9, 3);
  const auto sources = random_sources(6, 6, 9);
  for (const LengthPenalty& penalty : kPenalties) {
    for (const int64_t beam : {1, 2, 3, 5}) {
      for (const double patience : {1.0, 2.0}) {
        const SearchOptions options{
            .beam = beam, .n_best = beam, .penalty = penalty, .patience = patience, .rules = {.max_length = 8}};
        const auto found = search(model, sources, options);
        for (size_t n = 0; n < sources.size(); ++n) {
          const auto wanted = defined(model, sources[n], 8, options);
          expect_same(found[n], wanted, model.config().end);
        }
      }
    }
  }
}

TEST(Search, ABeamOfOneTakesTheBestTokenEachTime) {
  const Transformer model = tiny_model(12, 3);
  const auto sources = random_sources(10, 6, 12);
  const auto found = search(model, sources, {.beam = 1, .rules = {.max_length = 10}});
  for (size_t n = 0; n < sources.size(); ++n) {
    std::vector<int32_t> written;
    bool ended = false;
    while (!ended && written.size() < 10) {
      const std::vector<double> row = log_p(model, sources[n], written);
      written.push_back(static_cast<int32_t>(std::max_element(row.begin(), row.end()) - row.begin()));
      ended = written.back() == model.config().end;
    }
    if (ended) written.pop_back();
    ASSERT_EQ(found[n].size(), 1u);
    EXPECT_EQ(found[n][0].ids, written);
    EXPECT_EQ(found[n][0].ended, ended);
  }
}

bool same_bits(const std::vector<Hypothesis>& a, const std::vector<Hypothesis>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Hypothesis& x, const Hypothesis& y) {
    return x.ids == y.ids && x.score == y.score && x.token_scores == y.token_scores && x.ended == y.ended;
  });
}

TEST(Search, StoppingEarlyChangesNoResult) {
  const Transformer model = tiny_model(8, 3);
  const auto sources = random_sources(60, 9, 8);
  int64_t ended = 0;
  for (const LengthPenalty& penalty : kPenalties) {
    for (const int64_t n_best : {1, 2, 4}) {
      SearchOptions options{.beam = 4, .n_best = n_best, .penalty = penalty, .patience = 3};
      const auto early = search(model, sources, options);
      options.early_stop = false;
      const auto late = search(model, sources, options);
      for (size_t n = 0; n < sources.size(); ++n) {
        EXPECT_TRUE(same_bits(early[n], late[n])) << "sentence " << n << ", n_best " << n_best;
        ended += early[n].at(0).ended;
      }
    }
  }
  EXPECT_GT(ended, 60);  // else nothing could have stopped early
}

TEST(Search, NBestIsSortedAndWithoutTwins) {
  const Transformer model = tiny_model(30, 3);
  const auto found = search(model, random_sources(20, 9, 30), {.beam = 6, .n_best = 6});
  size_t several = 0;
  for (const auto& hypotheses : found) {
    ASSERT_GE(hypotheses.size(), 1u);
    EXPECT_LE(hypotheses.size(), 6u);
    several += hypotheses.size() > 1;
    std::set<std::pair<std::vector<int32_t>, bool>> seen;
    for (size_t n = 0; n < hypotheses.size(); ++n) {
      EXPECT_TRUE(seen.insert({hypotheses[n].ids, hypotheses[n].ended}).second);
      if (n > 0) {
        EXPECT_LE(hypotheses[n].score, hypotheses[n - 1].score);
      }
    }
  }
  EXPECT_EQ(several, found.size());
}

class SearchOnRungs : public testing::TestWithParam<harness::Step> {};

TEST_P(SearchOnRungs, BatchAndThreadsChangeNoBit) {
  const harness::Scope scope(GetParam());
  Transformer model = tiny_model(50, 4);
  model.pack();
  const auto sources = random_sources(std::max<int64_t>(8, harness::cases(30)), 25, 50);
  for (const int64_t beam : {1, 4}) {
    SearchOptions options{.beam = beam, .n_best = std::min<int64_t>(beam, 3)};
    std::vector<std::vector<Hypothesis>> alone;
    set_threads(1);
    for (const auto& source : sources) alone.push_back(search(model, {source}, options).at(0));
    for (const int threads : {1, 2, 5}) {
      for (const int64_t tokens : {1, 150, 1000000}) {
        set_threads(threads);
        options.batch.tokens = tokens;
        const auto found = search(model, sources, options);
        for (size_t n = 0; n < sources.size(); ++n)
          EXPECT_TRUE(same_bits(found[n], alone[n])) << threads << " threads, " << tokens << " tokens, sentence " << n;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Each, SearchOnRungs, testing::ValuesIn(harness::steps()),
                         [](const auto& info) { return info.param.name; });

TEST(Search, RulesHold) {
  const Transformer model = tiny_model(20, 4);
  const auto sources = random_sources(20, 6, 20);
  const auto shortest = search(model, sources, {.rules = {.max_length = 12, .min_length = 7}});
  for (const auto& hypotheses : shortest) EXPECT_GE(hypotheses.at(0).ids.size(), 7u);
  for (const auto& hypotheses : search(model, sources, {.rules = {.length_factor = 0, .length_offset = 3}})) {
    EXPECT_LE(hypotheses.at(0).token_scores.size(), 3u);
  }
  const auto found = search(model, sources, {.rules = {.max_length = 30, .min_length = 25, .no_repeat_ngram = 2}});
  for (const auto& hypotheses : found) {
    std::set<std::pair<int32_t, int32_t>> seen;
    const std::vector<int32_t>& ids = hypotheses.at(0).ids;
    for (size_t n = 1; n < ids.size(); ++n) EXPECT_TRUE(seen.insert({ids[n - 1], ids[n]}).second);
  }
}

TEST(Search, AnEmptySourceAndNoSourceAreFine) {
  const Transformer model = tiny_model(10);
  EXPECT_TRUE(search(model, {}, {}).empty());
  EXPECT_EQ(search(model, {{}}, {}).at(0).size(), 1u);
}

TEST(Search, RefusesWhatItCannotDo) {
  const Transformer model = tiny_model(10);
  for (const SearchOptions& wrong :
       {SearchOptions{.beam = 0}, SearchOptions{.beam = 64}, SearchOptions{.beam = 2, .n_best = 3},
        SearchOptions{.n_best = 0}, SearchOptions{.penalty = PowerPenalty{-101}}, SearchOptions{.patience = 0},
        SearchOptions{.rules = {.max_length = -1}}, SearchOptions{.rules = {.max_length = 3, .min_length = 4}},
        SearchOptions{.rules = {.length_offset = 0}}, SearchOptions{.rules = {.repetition_penalty = 0}},
        SearchOptions{.batch = {.tokens = 0}}, SearchOptions{.batch = {.compute = DType::i32}}}) {
    EXPECT_THROW(search(model, {{3}}, wrong), Error);
  }
  EXPECT_NO_THROW(search(model, {{3}}, {.rules = {.max_length = 4, .min_length = 4}}));
  EXPECT_NO_THROW(search(model, {{3}}, {.rules = {.min_length = 4}}));
  EXPECT_THROW(search(model, {{10}}, {}), Error);
  EXPECT_THROW(search(model, {{-1}}, {}), Error);
  EXPECT_THROW(search(model, {std::vector<int32_t>(40, 3)}, {}), Error);
}

TEST(Search, AModelOfNaNsIsNamed) {
  const Transformer model = tiny_model(10);
  model.params().all().front()->value.data<float>()[3 * 24] = NAN;
  const std::string sentence =
      ": the model's scores are NaN, so it cannot choose a token: its training diverged or its file is damaged; "
      "expected finite weights ('multihead inspect' counts those that are not)";
  const Refusal searched = refusal_of([&] { search(model, {{3, 4}}, {}); });
  EXPECT_EQ(searched.kind, ErrorKind::invalid_argument);
  EXPECT_EQ(searched.sentence, "search" + sentence);
  EXPECT_EQ(refusal_of([&] { sample(model, {{3, 4}}, {}); }).sentence, "sample" + sentence);
}

TEST(Search, TellsOfEverySourceOnceItIsWritten) {
  const Transformer model = tiny_model(12, 3);
  const auto sources = random_sources(40, 9, 12);
  std::mutex mutex;
  std::map<size_t, std::vector<Hypothesis>> heard;
  const auto found =
      search(model, sources, {.batch = {.tokens = 30}}, [&](size_t source, const std::vector<Hypothesis>& hypotheses) {
        const std::lock_guard lock(mutex);
        EXPECT_TRUE(heard.emplace(source, hypotheses).second) << source;
      });
  ASSERT_EQ(heard.size(), sources.size());
  for (size_t n = 0; n < sources.size(); ++n) EXPECT_TRUE(same_bits(heard.at(n), found[n])) << n;
}

}  // namespace
}  // namespace mh
