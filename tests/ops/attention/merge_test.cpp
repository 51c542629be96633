// Joining results over disjoint sets of keys.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "multihead/check/reference.h"
#include "multihead/ops/attention/attention.h"
#include "tests/ops/compare.h"

namespace mh {
namespace {

using test::contains;
using test::refusal;
using test::relative_error;

struct Merge : testing::Test {
  const Tensor q = randn({2, 4, 9, 16}, 1), k = randn({2, 2, 30, 16}, 2), v = randn({2, 2, 30, 8}, 3);

  AttentionResult part(int64_t begin, int64_t end) const {
    return attention(q, k.slice(2, begin, end), v.slice(2, begin, end));
  }
};

TEST_F(Merge, PartsOfTheKeysGiveTheWhole) {
  const AttentionResult whole = reference::attention(q, k, v), joined = merge({part(0, 7), part(7, 8), part(8, 30)});
  EXPECT_LT(relative_error(joined.o, whole.o), 1e-6);
  EXPECT_LT(relative_error(joined.lse, whole.lse), 1e-6);
}

TEST_F(Merge, OnePartIsItself) {
  const AttentionResult one = part(0, 30), joined = merge({one});
  EXPECT_TRUE(test::same_bits(joined.o, one.o));
  EXPECT_TRUE(test::same_bits(joined.lse, one.lse));
}

TEST_F(Merge, EmptyPartsCountForNothingWhateverTheyHold) {
  AttentionResult nothing = part(0, 0);
  EXPECT_EQ(nothing.lse.item({0, 0, 0}), -HUGE_VAL);
  nothing.o = full(nothing.o.shape(), NAN);
  const AttentionResult one = part(0, 30), joined = merge({nothing, one, nothing});
  EXPECT_TRUE(test::same_bits(joined.o, one.o));
  const AttentionResult none = merge({nothing, nothing});
  EXPECT_TRUE(test::same_bits(none.o, zeros(none.o.shape())));
  EXPECT_EQ(none.lse.item({1, 3, 8}), -HUGE_VAL);
}

TEST_F(Merge, LargeLogitsDoNotOverflow) {
  AttentionResult a = part(0, 10), b = part(10, 30);
  a.lse = full(a.lse.shape(), 1e4);
  b.lse = full(b.lse.shape(), 1e4 - 1);
  const AttentionResult joined = merge({a, b});
  EXPECT_NEAR(joined.lse.item({0, 0, 0}), 1e4 + std::log1p(std::exp(-1.0)), 1e-3);
  EXPECT_TRUE(std::isfinite(joined.o.item({0, 0, 0, 0})));
}

TEST_F(Merge, PackedResultsJoinToo) {
  const Tensor pq = randn({9, 4, 16}, 1), pk = randn({12, 2, 16}, 2), pv = randn({12, 2, 8}, 3);
  const Packed all{tensor<int32_t>({0, 4, 9}, {3}), tensor<int32_t>({0, 6, 12}, {3})};
  const AttentionOptions options{.packed = all};
  const AttentionResult whole = attention(pq, pk, pv, options);
  const auto half = [&](bool first) {
    std::vector<uint8_t> where(6);
    for (int j = 0; j < 6; ++j) where[j] = (j < 2) == first;
    return attention(pq, pk, pv, {.mask = keep(tensor<uint8_t>(where, {6})), .packed = all});
  };
  const AttentionResult joined = merge({half(true), half(false)});
  EXPECT_LT(relative_error(joined.o, whole.o), 1e-6);
  EXPECT_LT(relative_error(joined.lse, whole.lse), 1e-6);
}

TEST_F(Merge, GradientIsThatOfTheReference) {
  const std::vector<AttentionResult> parts{part(0, 7), part(7, 30), part(0, 0)};
  const AttentionResult joined = merge(parts), gradient{randn(joined.o.shape(), 5), randn(joined.lse.shape(), 6)};
  const auto ours = merge_backward(parts, joined, gradient), theirs = reference::merge_backward(parts, gradient);
  ASSERT_EQ(ours.size(), 3U);
  for (size_t n = 0; n < 3; ++n) {
    EXPECT_LT(relative_error(ours[n].o, theirs[n].o), 1e-6) << n;
    EXPECT_LT(relative_error(ours[n].lse, theirs[n].lse), 2e-6) << n;
  }
}

TEST_F(Merge, GradientThroughPartsIsThatOfTheWhole) {
  const AttentionResult whole = attention(q, k, v);
  const Tensor d_o = randn(whole.o.shape(), 5), d_lse = randn(whole.lse.shape(), 6);
  const AttentionGradients direct = attention_backward({q, k, v, whole}, d_o, d_lse);
  const std::vector<AttentionResult> parts{part(0, 13), part(13, 30)};
  const auto split = merge_backward(parts, merge(parts), {d_o, d_lse});
  const auto back = [&](int64_t begin, int64_t end, size_t n) {
    return attention_backward({q, k.slice(2, begin, end), v.slice(2, begin, end), parts[n]}, split[n].o, split[n].lse);
  };
  const AttentionGradients first = back(0, 13, 0), second = back(13, 30, 1);
  EXPECT_LT(relative_error(first.dk, direct.dk.slice(2, 0, 13)), 5e-6);
  EXPECT_LT(relative_error(second.dv, direct.dv.slice(2, 13, 30)), 5e-6);
}

TEST_F(Merge, PartsThatDoNotFitAreRefused) {
  EXPECT_TRUE(contains(refusal([] { merge({}); }), "merge: no parts are given"));
  const AttentionResult a = part(0, 7);
  EXPECT_TRUE(contains(refusal([&] { merge({a, {a.o, {}}}); }), "part 1 lacks o or lse"));
  EXPECT_TRUE(contains(refusal([&] {
                         merge({a, {a.o.slice(2, 0, 8), a.lse.slice(2, 0, 8)}});
                       }),
                       "o of part 1 is f32 [2, 4, 8, 8]"));
  EXPECT_TRUE(contains(refusal([&] {
                         merge({{a.o, a.lse.slice(2, 0, 8)}});
                       }),
                       "lse of part 0 is f32 [2, 4, 8]; expected f32 [2, 4, 9]"));
  EXPECT_TRUE(contains(refusal([&] { merge({{a.o.to(DType::f64), a.lse}}); }), "o of part 0 holds f64"));
  EXPECT_TRUE(contains(refusal([&] { merge_backward({a}, a, {a.o.slice(2, 0, 8), {}}); }), "merge_backward"));
}

}  // namespace
}  // namespace mh
