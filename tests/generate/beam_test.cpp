// A beam step by step: what becomes of equal scores, and of hypotheses beside those that end.
#include "multihead/generate/beam.h"

#include <gtest/gtest.h>

namespace mh::detail {
namespace {

constexpr int32_t kEnd = 2;
const std::vector<int32_t> kEnds{kEnd};

void advance(Beam& beam, const std::vector<float>& log_p, const std::vector<int32_t>& tokens) {
  beam.advance(log_p.data(), tokens.data(), static_cast<int64_t>(tokens.size() / beam.live().size()));
}

TEST(Beam, EqualSumsGoByTheBetterParentThenTheSmallerToken) {
  const SearchOptions options{.beam = 2};
  Beam beam(options, 9, kEnds);
  advance(beam, {-1, -1, -1}, {7, 5, 6});
  ASSERT_EQ(beam.live().size(), 2u);
  EXPECT_EQ(beam.live()[0].token, 5);
  EXPECT_EQ(beam.live()[1].token, 6);
  advance(beam, {-1, -1, -1, -1, -1, -1}, {9, 8, 10, 3, 4, 5});
  ASSERT_EQ(beam.live().size(), 2u);
  for (const auto& live : beam.live()) EXPECT_EQ(live.parent, 0);
  EXPECT_EQ(beam.live()[0].token, 8);
  EXPECT_EQ(beam.live()[1].token, 9);
}

TEST(Beam, OfEqualScoresTheOneFinishedEarlierIsFirst) {
  const SearchOptions options{.beam = 2, .n_best = 2, .penalty = PowerPenalty{0}};
  Beam beam(options, 9, kEnds);
  advance(beam, {-1, -2, -3}, {5, kEnd, 6});
  advance(beam, {-1, -9, -9, -9, -9, -9}, {kEnd, 3, 4, 3, 4, 7});
  const std::vector<Hypothesis> found = beam.results();
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].score, found[1].score);
  EXPECT_EQ(found[0].ids, std::vector<int32_t>{});
  EXPECT_EQ(found[1].ids, std::vector<int32_t>{5});
}

// Both hypotheses end with the best of their tokens; the two that go on are the third and the fourth of all extensions.
TEST(Beam, AsManyGoOnWhenAllCouldEnd) {
  const SearchOptions options{.beam = 2, .n_best = 2, .patience = 4, .early_stop = false};
  Beam beam(options, 9, kEnds);
  advance(beam, {-1, -1.5F, -3}, {5, 6, 7});
  advance(beam, {-0.1F, -3, -7, -0.1F, -3, -7}, {kEnd, 8, 9, kEnd, 3, 4});
  ASSERT_EQ(beam.live().size(), 2u);
  EXPECT_EQ(beam.live()[0].token, 8);
  EXPECT_EQ(beam.live()[0].parent, 0);
  EXPECT_EQ(beam.live()[1].token, 3);
  EXPECT_EQ(beam.live()[1].parent, 1);
}

// Finished are -0.9 and -1.9 / 2. The best that goes on would now score -2 / 2: the heuristic stops there, although two
// more tokens of log p 0 make it -2 / 4. An exact search waits for them.
TEST(Beam, TheHeuristicStopsWhereALongerHypothesisCouldStillWin) {
  for (const Stop stop : {Stop::heuristic, Stop::exact}) {
    const SearchOptions options{.beam = 2, .stop = stop};
    Beam beam(options, 4, kEnds);
    advance(beam, {-0.9F, -1.8F, -9}, {kEnd, 5, 6});
    EXPECT_EQ(beam.live().size(), 2U);
    advance(beam, {-0.1F, -0.2F, -9, -9, -9, -9}, {kEnd, 6, 4, 3, 4, 7});
    EXPECT_EQ(beam.live().size(), stop == Stop::heuristic ? 0U : 2U);
    if (stop == Stop::heuristic) continue;
    advance(beam, {0, -9, -9, -9, -9, -9}, {7, 3, 4, 3, 4, 8});
    advance(beam, {0, -9, -9, -9, -9, -9}, {kEnd, 3, 4, 3, 4, 8});
    EXPECT_EQ(beam.results()[0].ids, (std::vector<int32_t>{5, 6, 7}));
  }
}

TEST(Beam, AnyOfSeveralEndsEnds) {
  const std::vector<int32_t> ends{2, 9};
  const SearchOptions options{.beam = 1};
  Beam beam(options, 9, ends);
  advance(beam, {-1, -2, -3}, {9, 5, 6});
  EXPECT_TRUE(beam.live().empty());
  EXPECT_TRUE(beam.results()[0].ids.empty());
  EXPECT_TRUE(beam.results()[0].ended);
}

}  // namespace
}  // namespace mh::detail
