// Options of the op: defaults, layouts, and what outputs mean; values are judged by the table of cases.
#include <gtest/gtest.h>

#include <cmath>

#include "multihead/check/reference.h"
#include "multihead/ops/attention/attention.h"
#include "tests/ops/compare.h"

namespace mh {
namespace {

using test::relative_error;
using test::same_bits;

struct Attention : testing::Test {
  const Tensor q = randn({2, 4, 24, 32}, 1), k = randn({2, 2, 40, 32}, 2), v = randn({2, 2, 40, 16}, 3),
               d_o = randn({2, 4, 24, 16}, 4), d_lse = randn({2, 4, 24}, 5);

  void agrees(const AttentionOptions& options) const {
    const AttentionResult ours = attention(q, k, v, options), theirs = reference::attention(q, k, v, options);
    EXPECT_LT(relative_error(ours.o, theirs.o), 5e-6);
    EXPECT_LT(relative_error(ours.lse, theirs.lse), 5e-6);
    const AttentionGradients a = attention_backward({q, k, v, ours}, d_o, d_lse, options);
    const AttentionGradients b = reference::attention_backward({q, k, v, {}}, d_o, d_lse, options);
    EXPECT_LT(relative_error(a.dq, b.dq), 1e-5);
    EXPECT_LT(relative_error(a.dk, b.dk), 1e-5);
    EXPECT_LT(relative_error(a.dv, b.dv), 1e-5);
    ASSERT_EQ(a.dbias.size(), b.dbias.size());
    for (size_t n = 0; n < a.dbias.size(); ++n) EXPECT_LT(relative_error(a.dbias[n], b.dbias[n]), 1e-5) << n;
    EXPECT_EQ(static_cast<bool>(a.dtau), static_cast<bool>(b.dtau));
    if (a.dtau) {
      EXPECT_LT(relative_error(a.dtau, b.dtau), 1e-5);
    }
  }
};

TEST_F(Attention, ScaleDefaultsToOneOverTheRootOfTheWidth) {
  const AttentionOptions given{.similarity = DotSimilarity{1 / std::sqrt(32.0f)}};
  EXPECT_TRUE(same_bits(attention(q, k, v).o, attention(q, k, v, given).o));
  agrees({.similarity = DotSimilarity{0.7f}});
}

TEST_F(Attention, EuclideanScaleDefaultsLikewise) { agrees({.similarity = EuclideanSimilarity{}}); }

TEST_F(Attention, CosineTakesOneTauOrOnePerHead) {
  const AttentionOptions one{.similarity = CosineSimilarity{4}}, each{.similarity = CosineSimilarity{1, full({4}, 4)}};
  EXPECT_TRUE(same_bits(attention(q, k, v, one).o, attention(q, k, v, each).o));
  agrees(one);
}

TEST_F(Attention, BiasesAddUpAndEachHasItsGradient) {
  agrees({.bias = {AlibiBias{randn({4}, 5)}, DenseBias{randn({2, 1, 24, 40}, 6)}}});
  agrees({.mask = causal(), .bias = {DenseBias{randn({4, 1, 40}, 6)}, T5Bias{randn({8, 4}, 5), false, 20}}});
  agrees({.bias = {DenseBias{randn({24, 1}, 6)}}});
}

TEST_F(Attention, OnePositionServesBiasAndMask) {
  agrees({.mask = window(3, 2) & positions(5), .bias = {AlibiBias{randn({4}, 5)}}});
  agrees({.mask = causal(tensor<int32_t>({3, 20}, {2})), .bias = {T5Bias{randn({8, 4}, 5)}}});
}

TEST_F(Attention, StridedViewsNeedNoCopy) {
  const Tensor packed = randn({2, 24, 3, 4, 32}, 9);  // (B, T, qkv, H, D)
  const auto part = [&](int64_t n) { return packed.select(2, n).transpose(1, 2); };
  const Tensor q1 = part(0), k1 = part(1), v1 = part(2);
  EXPECT_FALSE(q1.is_contiguous());
  EXPECT_TRUE(same_bits(attention(q1, k1, v1).o, attention(q1.contiguous(), k1.contiguous(), v1.contiguous()).o));
}

TEST_F(Attention, OutputsOfTheCallerMayBeStrided) {
  const Tensor o = zeros({2, 24, 4, 16}), lse = zeros({2, 24, 4});
  attention_into({o.transpose(1, 2), lse.transpose(1, 2)}, q, k, v);
  const AttentionResult plain = attention(q, k, v);
  EXPECT_TRUE(same_bits(o.transpose(1, 2).contiguous(), plain.o));
  EXPECT_TRUE(same_bits(lse.transpose(1, 2).contiguous(), plain.lse));
}

TEST_F(Attention, LseMayBeLeftOut) {
  const Tensor o = empty({2, 4, 24, 16});
  attention_into({o, {}}, q, k, v);
  EXPECT_TRUE(same_bits(o, attention(q, k, v).o));
}

TEST_F(Attention, OnlyTheGradientsAskedForAreComputed) {
  const AttentionResult out = attention(q, k, v);
  const AttentionGradients all = attention_backward({q, k, v, out}, d_o), one{.dk = empty_like(k)};
  attention_backward_into(one, {q, k, v, out}, {d_o, {}});
  EXPECT_TRUE(same_bits(one.dk, all.dk));
}

TEST_F(Attention, KeysPastALengthGetNoGradient) {
  const AttentionOptions options{.mask = lengths(tensor<int32_t>({0, 17}, {2}))};
  const AttentionGradients g = attention_backward({q, k, v, attention(q, k, v, options)}, d_o, {}, options);
  EXPECT_TRUE(same_bits(g.dk.select(0, 0), zeros({2, 40, 32})));
  EXPECT_TRUE(same_bits(g.dv.select(0, 1).slice(1, 17, 40).contiguous(), zeros({2, 23, 16})));
  EXPECT_TRUE(same_bits(g.dq.select(0, 0), zeros({4, 24, 32})));
  EXPECT_NE(g.dk.item({1, 0, 16, 0}), 0);
  agrees(options);
}

TEST_F(Attention, PackedKeysPastALengthGetNoGradient) {
  const Tensor pq = randn({6, 4, 32}, 1), pk = randn({10, 2, 32}, 2), pv = randn({10, 2, 16}, 3),
               pd_o = randn({6, 4, 16}, 4);
  const AttentionOptions options{
      .mask = lengths(tensor<int32_t>({2, 4, 0}, {3})),
      .packed = Packed{tensor<int32_t>({0, 2, 4, 6}, {4}), tensor<int32_t>({0, 3, 7, 10}, {4})}};
  const AttentionGradients ours = attention_backward({pq, pk, pv, attention(pq, pk, pv, options)}, pd_o, {}, options);
  const AttentionGradients theirs = reference::attention_backward({pq, pk, pv, {}}, pd_o, {}, options);
  EXPECT_LT(relative_error(ours.dk, theirs.dk), 1e-5);
  EXPECT_LT(relative_error(ours.dv, theirs.dv), 1e-5);
}

TEST_F(Attention, NoKeysNoRowsNoBatchAreNoErrors) {
  const AttentionResult none = attention(q, k.slice(2, 0, 0), v.slice(2, 0, 0));
  EXPECT_TRUE(same_bits(none.o, zeros({2, 4, 24, 16})));
  EXPECT_EQ(none.lse.item({0, 0, 0}), -HUGE_VAL);
  const AttentionGradients g = attention_backward({q, k.slice(2, 0, 0), v.slice(2, 0, 0), none}, d_o);
  EXPECT_TRUE(same_bits(g.dq, zeros(q.shape())));
  EXPECT_TRUE(attention(q.slice(2, 0, 0), k, v).o.shape() == Shape({2, 4, 0, 16}));
  const AttentionResult no_rows = attention(q.slice(2, 0, 0), k, v);
  EXPECT_TRUE(
      same_bits(attention_backward({q.slice(2, 0, 0), k, v, no_rows}, d_o.slice(2, 0, 0)).dk, zeros(k.shape())));
  EXPECT_TRUE(attention(q.slice(0, 0, 0), k.slice(0, 0, 0), v.slice(0, 0, 0)).o.shape() == Shape({0, 4, 24, 16}));
}

TEST_F(Attention, SinkIsTheLseOfAnEmptyRow) {
  const Tensor sink = tensor<float>({-1, 0, 2, 3}, {4});
  const AttentionResult out = attention(q, k.slice(2, 0, 0), v.slice(2, 0, 0), {.sink = sink});
  for (int64_t h = 0; h < 4; ++h)
    EXPECT_FLOAT_EQ(static_cast<float>(out.lse.item({1, h, 5})), static_cast<float>(sink.item({h})));
  EXPECT_TRUE(same_bits(out.o, zeros({2, 4, 24, 16})));
}

TEST_F(Attention, PackedSequencesAreAsAlone) {
  const Tensor pq = randn({30, 4, 32}, 1), pk = randn({45, 2, 32}, 2), pv = randn({45, 2, 16}, 3);
  const std::vector<int32_t> cu_q{0, 1, 1, 30}, cu_k{0, 9, 20, 45};
  const AttentionResult all = attention(
      pq, pk, pv, {.mask = causal(), .packed = Packed{tensor<int32_t>(cu_q, {4}), tensor<int32_t>(cu_k, {4})}});
  for (int b = 0; b < 3; ++b) {
    const auto alone = [&](const Tensor& t, const std::vector<int32_t>& cu) {
      return t.slice(0, cu[b], cu[b + 1]).transpose(0, 1).unsqueeze(0);
    };
    const AttentionResult one = attention(alone(pq, cu_q), alone(pk, cu_k), alone(pv, cu_k), {.mask = causal()});
    EXPECT_TRUE(same_bits(alone(all.o, cu_q).contiguous(), one.o)) << b;
    EXPECT_TRUE(same_bits(all.lse.slice(1, cu_q[b], cu_q[b + 1]).unsqueeze(0).contiguous(), one.lse)) << b;
  }
}

TEST_F(Attention, WeightsOfChosenHeadsAndRows) {
  const AttentionOptions options{.mask = causal(), .bias = {AlibiBias{randn({4}, 5)}}, .dropout = {0.5f, 1}};
  const Tensor lse = attention(q, k, v, options).lse, all = attention_weights(q, k, lse, options);
  const Tensor some = attention_weights(q, k, lse, options, {3, 1}, {23, 0});
  EXPECT_LT(relative_error(all, reference::attention_weights(q, k, options)), 5e-6);
  EXPECT_TRUE(same_bits(some.select(1, 0).select(1, 1).contiguous(), all.select(1, 3).select(1, 0).contiguous()));
  EXPECT_TRUE(same_bits(some.select(1, 1).select(1, 0).contiguous(), all.select(1, 1).select(1, 23).contiguous()));
  const Tensor into = full(some.shape(), 9);
  attention_weights_into(into, {.q = q, .k = k, .result = {.lse = lse}}, options, {{3, 1}, {23, 0}});
  EXPECT_TRUE(same_bits(into, some));
}

TEST_F(Attention, StatisticsAreThoseOfTheWeights) {
  const AttentionOptions options{.mask = window(9, 3), .sink = randn({4}, 5)};
  const AttentionStatistics ours = attention_statistics(q, k, attention(q, k, v, options).lse, options, 5);
  const AttentionStatistics theirs = reference::attention_statistics(q, k, options, 5);
  EXPECT_LT(relative_error(ours.entropy, theirs.entropy), 5e-6);
  EXPECT_LT(relative_error(ours.received, theirs.received), 5e-6);
  EXPECT_LT(relative_error(ours.distance, theirs.distance), 5e-6);
  EXPECT_LT(relative_error(ours.top_weights, theirs.top_weights), 5e-6);
  EXPECT_EQ(test::numbers(ours.top_keys), test::numbers(theirs.top_keys));
}

}  // namespace
}  // namespace mh
