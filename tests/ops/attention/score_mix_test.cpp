// Learned mixing of scores over heads and keys.
#include <gtest/gtest.h>

#include <cmath>

#include "multihead/base/parallel.h"
#include "multihead/check/reference.h"
#include "multihead/ops/attention/attention.h"
#include "tests/ops/compare.h"

namespace mh {
namespace {

using test::relative_error;
using test::same_bits;

struct ScoreMixing : testing::Test {
  const Tensor q = randn({2, 4, 7, 12}, 1), k = randn({2, 2, 11, 12}, 2), v = randn({2, 2, 11, 5}, 3);
  const Tensor over_heads = randn({4, 4}, 4), over_keys = randn({11, 11}, 5), sink = randn({4}, 6),
               bias = randn({4, 7, 11}, 7);

  void agrees(const AttentionOptions& options, DType dtype, double near) const {
    const Tensor q1 = q.to(dtype), k1 = k.to(dtype), v1 = v.to(dtype);
    const AttentionResult ours = attention(q1, k1, v1, options), theirs = reference::attention(q1, k1, v1, options);
    EXPECT_LT(relative_error(ours.o, theirs.o), near);
    EXPECT_LT(relative_error(ours.lse, theirs.lse), 2e-6);
    const Tensor d_o = randn(ours.o.shape(), 7, dtype), d_lse = randn(ours.lse.shape(), 8);
    const AttentionGradients g = attention_backward({q1, k1, v1, ours}, d_o, d_lse, options);
    const AttentionGradients r = reference::attention_backward({q1, k1, v1, {}}, d_o, d_lse, options);
    EXPECT_LT(relative_error(g.dq, r.dq), near);
    EXPECT_LT(relative_error(g.dk, r.dk), near);
    EXPECT_LT(relative_error(g.dv, r.dv), near);
    EXPECT_LT(relative_error(g.dmix, r.dmix), near);
    if (r.dsink) {
      EXPECT_LT(relative_error(g.dsink, r.dsink), near);
    }
    for (size_t n = 0; n < r.dbias.size(); ++n) EXPECT_LT(relative_error(g.dbias[n], r.dbias[n]), near);
  }
};

TEST_F(ScoreMixing, OverHeadsAgreesWithTheReference) {
  const AttentionOptions options{.mask = causal(),
                                 .bias = {DenseBias{bias}},
                                 .cap = 2,
                                 .sink = sink,
                                 .dropout = {0.1f, 1},
                                 .score_mix = HeadMix{over_heads}};
  agrees(options, DType::f32, 5e-6);
  agrees(options, DType::bf16, 2e-2);
  agrees(options, DType::f16, 3e-3);
}

TEST_F(ScoreMixing, OverKeysAgreesWithTheReference) {
  agrees({.bias = {DenseBias{bias}, AlibiBias{sink}}, .cap = 2, .sink = sink, .score_mix = KeyMix{over_keys}},
         DType::f32, 5e-6);
  agrees({.similarity = CosineSimilarity{3}, .score_mix = KeyMix{over_keys}}, DType::f32, 5e-6);
  agrees({.similarity = EuclideanSimilarity{}, .score_mix = KeyMix{over_keys}}, DType::f16, 3e-3);
}

TEST_F(ScoreMixing, ByTheUnitMatrixChangesNothing) {
  std::vector<float> unit(16);
  for (int n = 0; n < 4; ++n) unit[n * 5] = 1;
  const AttentionResult plain = attention(q, k, v),
                        mixed = attention(q, k, v, {.score_mix = HeadMix{tensor<float>(unit, {4, 4})}});
  EXPECT_LT(relative_error(mixed.o, plain.o), 1e-6);
  EXPECT_LT(relative_error(mixed.lse, plain.lse), 1e-6);
}

TEST_F(ScoreMixing, KeysPastALengthAreNotMixedIn) {
  const Mask mask = lengths(tensor<int32_t>({6, 6}, {2}));
  const AttentionOptions options{.mask = mask, .score_mix = KeyMix{over_keys}};
  const Tensor garbage_k = k.clone(), garbage_v = v.clone();
  garbage_k.slice(2, 6, 11).copy_from(full({2, 2, 5, 12}, NAN));
  garbage_v.slice(2, 6, 11).copy_from(full({2, 2, 5, 5}, NAN));
  const AttentionResult clean = attention(q, k, v, options), dirty = attention(q, garbage_k, garbage_v, options);
  EXPECT_TRUE(same_bits(clean.o, dirty.o));
  const AttentionResult cut =
      attention(q, k.slice(2, 0, 6), v.slice(2, 0, 6), {.score_mix = KeyMix{over_keys.slice(0, 0, 6).slice(1, 0, 6)}});
  EXPECT_TRUE(same_bits(clean.o, cut.o));
  const Tensor d_o = randn(clean.o.shape(), 8);
  const AttentionGradients a = attention_backward({q, k, v, clean}, d_o, {}, options);
  const AttentionGradients b = attention_backward({q, garbage_k, garbage_v, dirty}, d_o, {}, options);
  EXPECT_TRUE(same_bits(a.dq, b.dq) && same_bits(a.dk, b.dk) && same_bits(a.dv, b.dv) && same_bits(a.dmix, b.dmix));
  EXPECT_EQ(a.dk.item({1, 1, 6, 0}), 0);
}

TEST_F(ScoreMixing, MaskedGarbageStaysOut) {
  const AttentionOptions options{.mask = causal(), .score_mix = HeadMix{over_heads}};
  const Tensor d_o = randn({2, 4, 7, 5}, 8), garbage_k = k.clone(), garbage_v = v.clone();
  garbage_k.slice(2, 10, 11).copy_from(full({2, 2, 1, 12}, NAN));
  garbage_v.slice(2, 10, 11).copy_from(full({2, 2, 1, 5}, HUGE_VAL));
  const AttentionResult clean = attention(q, k, v, options), dirty = attention(q, garbage_k, garbage_v, options);
  EXPECT_TRUE(same_bits(clean.o.slice(2, 0, 6).contiguous(), dirty.o.slice(2, 0, 6).contiguous()));
  EXPECT_TRUE(std::isnan(dirty.o.item({0, 0, 6, 0})));
  const AttentionGradients a = attention_backward({q, k, v, clean}, d_o, {}, options);
  const AttentionGradients b = attention_backward({q, garbage_k, garbage_v, dirty}, d_o, {}, options);
  EXPECT_TRUE(same_bits(a.dq.slice(2, 0, 6).contiguous(), b.dq.slice(2, 0, 6).contiguous()));
}

TEST_F(ScoreMixing, ThreadsChangeNoBit) {
  const AttentionOptions options{.dropout = {0.2f, 3}, .score_mix = HeadMix{over_heads}};
  const Tensor d_o = randn({2, 4, 7, 5}, 8);
  const int before = threads();
  set_threads(1);
  const AttentionResult one = attention(q, k, v, options);
  const AttentionGradients g1 = attention_backward({q, k, v, one}, d_o, {}, options);
  set_threads(7);
  const AttentionResult seven = attention(q, k, v, options);
  const AttentionGradients g7 = attention_backward({q, k, v, seven}, d_o, {}, options);
  set_threads(before);
  EXPECT_TRUE(same_bits(one.o, seven.o) && same_bits(one.lse, seven.lse));
  EXPECT_TRUE(same_bits(g1.dq, g7.dq) && same_bits(g1.dk, g7.dk) && same_bits(g1.dv, g7.dv) &&
              same_bits(g1.dmix, g7.dmix));
}

TEST_F(ScoreMixing, WeightsAndStatisticsAreOfTheMixedScores) {
  const AttentionOptions options{.mask = causal(), .score_mix = HeadMix{over_heads}};
  const AttentionResult out = attention(q, k, v, options);
  EXPECT_LT(relative_error(attention_weights(q, k, out.lse, options), reference::attention_weights(q, k, options)),
            5e-6);
  EXPECT_LT(relative_error(attention_statistics(q, k, out.lse, options).received,
                           reference::attention_statistics(q, k, options).received),
            5e-6);
}

}  // namespace
}  // namespace mh
