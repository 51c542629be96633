// Masks: what each piece means, and how pieces join.
#include "multihead/ops/attention/mask.h"

#include <gtest/gtest.h>

#include <vector>

#include "multihead/ops/attention/attention.h"
#include "tests/ops/compare.h"

namespace mh {
namespace {

using test::contains;
using test::refusal;

// kept[i][j] as the weights of one head show it.
std::vector<std::string> kept(const Mask& mask, int64_t Tq, int64_t Tk, int64_t b = 0, int64_t batch = 1) {
  const Tensor q = randn({batch, 1, Tq, 4}, 1), k = randn({batch, 1, Tk, 4}, 2), v = randn({batch, 1, Tk, 4}, 3);
  const AttentionOptions options{.mask = mask};
  const Tensor weights = attention_weights(q, k, attention(q, k, v, options).lse, options);
  std::vector<std::string> rows;
  for (int64_t i = 0; i < Tq; ++i) {
    std::string row;
    for (int64_t j = 0; j < Tk; ++j) row += weights.item({b, 0, i, j}) > 0 ? 'x' : '.';
    rows.push_back(row);
  }
  return rows;
}

using Grid = std::vector<std::string>;

TEST(Mask, DefaultKeepsEverything) { EXPECT_EQ(kept({}, 2, 3), (Grid{"xxx", "xxx"})); }

TEST(Mask, CausalEndsAtTheLastKey) {
  EXPECT_EQ(kept(causal(), 3, 5), (Grid{"xxx..", "xxxx.", "xxxxx"}));
  EXPECT_EQ(kept(causal(), 3, 2), (Grid{"..", "x.", "xx"}));
}

TEST(Mask, TorchCausalBeginsAtTheFirstKey) {
  EXPECT_EQ(kept(from_torch_causal(), 3, 5), (Grid{"x....", "xx...", "xxx.."}));
}

TEST(Mask, CausalTakesOffsetsBySequence) {
  const Mask mask = causal(tensor<int32_t>({0, 2}, {2}));
  EXPECT_EQ(kept(mask, 2, 4, 0, 2), (Grid{"x...", "xx.."}));
  EXPECT_EQ(kept(mask, 2, 4, 1, 2), (Grid{"xxx.", "xxxx"}));
}

TEST(Mask, WindowIsCountedFromThePosition) {
  EXPECT_EQ(kept(window(1, 1), 4, 4), (Grid{"xx..", "xxx.", ".xxx", "..xx"}));
  EXPECT_EQ(kept(window(-1, 0), 3, 3), (Grid{"x..", "xx.", "xxx"}));
  EXPECT_EQ(kept(window(0, -1), 3, 3), (Grid{"xxx", ".xx", "..x"}));
  EXPECT_EQ(kept(window(0, 0) & positions(1), 2, 4), (Grid{".x..", "..x."}));
}

TEST(Mask, WindowFarBeyondTheKeysKeepsEverything) {
  EXPECT_EQ(kept(window(INT64_MAX, INT64_MAX) & positions(-2), 2, 2), (Grid{"xx", "xx"}));
}

TEST(Mask, LengthsCutKeysAndMoveTheDefaultPosition) {
  const Mask mask = lengths(tensor<int32_t>({2, 4}, {2}));
  EXPECT_EQ(kept(mask, 2, 4, 0, 2), (Grid{"xx..", "xx.."}));
  EXPECT_EQ(kept(mask & causal(), 2, 4, 0, 2), (Grid{"x...", "xx.."}));
  EXPECT_EQ(kept(mask & causal(), 2, 4, 1, 2), (Grid{"xxx.", "xxxx"}));
}

TEST(Mask, OfSeveralLengthsTheSmallestCounts) {
  const Mask mask = lengths(tensor<int32_t>({3}, {1})) & lengths(tensor<int32_t>({2}, {1}));
  EXPECT_EQ(kept(mask, 1, 4), (Grid{"xx.."}));
}

TEST(Mask, PrefixIsSeenByAll) {
  EXPECT_EQ(kept(prefix(2), 4, 4), (Grid{"xx..", "xx..", "xxx.", "xxxx"}));
  EXPECT_EQ(kept(prefix(100), 2, 2), (Grid{"xx", "xx"}));
  EXPECT_EQ(kept(prefix(tensor<int32_t>({1, 3}, {2})), 3, 3, 1, 2), (Grid{"xxx", "xxx", "xxx"}));
}

TEST(Mask, PrefixJoinedWithCausalIsCausal) { EXPECT_EQ(kept(prefix(2) & causal(), 3, 3), (Grid{"x..", "xx.", "xxx"})); }

TEST(Mask, DocumentsKeepToThemselves) {
  EXPECT_EQ(kept(documents(tensor<int32_t>({7, 7, 9, 9}, {1, 4})), 4, 4), (Grid{"xx..", "xx..", "..xx", "..xx"}));
  EXPECT_EQ(kept(documents(tensor<int32_t>({9, 7}, {1, 2}), tensor<int32_t>({7, 7, 9}, {1, 3})), 2, 3),
            (Grid{"..x", "xx."}));
}

TEST(Mask, DocumentsNeedNotLieInOnePiece) {
  EXPECT_EQ(kept(documents(tensor<int32_t>({3, 1, 3}, {1, 3})), 3, 3), (Grid{"x.x", ".x.", "x.x"}));
  EXPECT_EQ(kept(documents(tensor<int32_t>({9, 2, 3}, {1, 3}), tensor<int32_t>({3, 9, 3, 2}, {1, 4})), 3, 4),
            (Grid{".x..", "...x", "x.x."}));
}

TEST(Mask, DocumentsJoinWithOtherLimits) {
  const Tensor ids = tensor<int32_t>({5, 5, 5, 2, 2, 5}, {1, 6});
  EXPECT_EQ(kept(documents(ids) & lengths(tensor<int32_t>({5}, {1})) & positions(0), 6, 6),
            (Grid{"xxx...", "xxx...", "xxx...", "...xx.", "...xx.", "xxx..."}));
  EXPECT_EQ(kept(documents(ids) & lengths(tensor<int32_t>({5}, {1})) & positions(0) & window(1, 0), 6, 6),
            (Grid{"x.....", "xx....", ".xx...", "...x..", "...xx.", "......"}));
}

TEST(Mask, QueryAtNoKeyHasNoDocument) {
  const Mask mask = documents(tensor<int32_t>({-1, -1, -2}, {1, 3})) & positions(-1);
  EXPECT_EQ(kept(mask, 3, 3), (Grid{"...", "xx.", "xx."}));
}

TEST(Mask, KeepAndDropAreOpposites) {
  const Tensor where = tensor<bool>({true, false, true, false, false, true}, {2, 3});
  EXPECT_EQ(kept(keep(where), 2, 3), (Grid{"x.x", "..x"}));
  EXPECT_EQ(kept(drop(where), 2, 3), (Grid{".x.", "xx."}));
  EXPECT_EQ(kept(keep(where) & drop(tensor<bool>({true, false, false}, {3})), 2, 3), (Grid{"..x", "..x"}));
}

TEST(Mask, JoiningTakesTheTighterWindow) {
  const Mask joined = window(3, -1) & window(1, 2) & window(-1, 5);
  EXPECT_EQ(joined.behind, 1);
  EXPECT_EQ(joined.ahead, 2);
}

TEST(Mask, JoiningKeepsTheOffsetOfEitherSide) {
  EXPECT_EQ(*(causal(3) & window(1, 1)).offset, 3);
  EXPECT_EQ(*(window(1, 1) & causal(3)).offset, 3);
  EXPECT_EQ(*(causal(3) & causal(3)).offset, 3);
}

TEST(Mask, JoiningDifferentOffsetsIsRefused) {
  EXPECT_TRUE(contains(refusal([] { (void)(causal(3) & causal(4)); }), "expected one offset"));
  const Tensor same = tensor<int32_t>({3, 3}, {2}), other = tensor<int32_t>({3, 4}, {2});
  EXPECT_EQ(refusal([&] { (void)(causal(3) & causal(same)); }), "");
  EXPECT_TRUE(contains(refusal([&] { (void)(causal(3) & causal(other)); }), "expected one offset"));
  EXPECT_TRUE(contains(refusal([&] { (void)(causal(same) & causal(other)); }), "expected one offset"));
}

TEST(Mask, JoiningTwoPrefixesOrDocumentsIsRefused) {
  EXPECT_TRUE(contains(refusal([] { (void)(prefix(1) & prefix(2)); }), "both sides give a prefix"));
  const Tensor ids = tensor<int32_t>({1, 2}, {1, 2});
  EXPECT_TRUE(contains(refusal([&] { (void)(documents(ids) & documents(ids)); }), "both sides give documents"));
}

TEST(Mask, NegativeWindowsAndPrefixesAreRefused) {
  EXPECT_TRUE(contains(refusal([] { window(-2, 0); }), "window: left is -2"));
  EXPECT_TRUE(contains(refusal([] { window(0, -7); }), "right is -7"));
  EXPECT_TRUE(contains(refusal([] { prefix(-1); }), "prefix: n is -1"));
}

}  // namespace
}  // namespace mh
