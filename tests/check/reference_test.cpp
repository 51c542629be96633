// The reference judged by hand-worked numbers and by the published ones of Philox and T5.
#include "multihead/check/reference.h"

#include <gtest/gtest.h>

#include <cmath>

#include "multihead/check/problem.h"
#include "tests/check/numbers.h"

namespace mh {
namespace {

using reference::values;

// One head, one width: q = 1, k = 0, ln 2, ln 3 give weights 1 : 2 : 3.
struct Tiny {
  Tensor q = tensor<double>({1, 1}, {1, 1, 2, 1});
  Tensor k = tensor<double>({0, std::log(2.0), std::log(3.0)}, {1, 1, 3, 1});
  Tensor v = tensor<double>({6, 12, 24}, {1, 1, 3, 1});
};

void expect_values(const Tensor& got, const std::vector<double>& wanted) {
  const auto x = values<double>(got);
  ASSERT_EQ(x.size(), wanted.size());
  for (size_t n = 0; n < x.size(); ++n) {
    if (std::isinf(wanted[n])) {
      EXPECT_EQ(x[n], wanted[n]) << n;
    } else {
      EXPECT_NEAR(x[n], wanted[n], 1e-12) << n;
    }
  }
}

TEST(Reference, WeightsTheValues) {
  const Tiny t;
  const AttentionResult result = reference::attention(t.q, t.k, t.v);
  expect_values(result.o, {(6 + 24 + 72) / 6.0, 17});
  expect_values(result.lse, {std::log(6.0), std::log(6.0)});
}

TEST(Reference, LastQuerySeesTheLastKeyWhenCausal) {
  const Tiny t;
  expect_values(reference::attention(t.q, t.k, t.v, {.mask = causal()}).o, {10, 17});
  expect_values(reference::attention(t.q, t.k, t.v, {.mask = from_torch_causal()}).o, {6, 10});
}

TEST(Reference, WindowCountsFromThePosition) {
  const Tiny t;
  expect_values(reference::attention(t.q, t.k, t.v, {.mask = window(0, 1)}).o, {(24 + 72) / 5.0, 24});
}

TEST(Reference, LengthsMoveThePosition) {
  const Tiny t;
  expect_values(reference::attention(t.q, t.k, t.v, {.mask = causal() & lengths(tensor<int32_t>({2}, {1}))}).o,
                {6, 10});
}

TEST(Reference, PrefixIsSeenByAll) {
  const Tiny t;
  expect_values(reference::attention(t.q, t.k, t.v, {.mask = prefix(2) & causal(0)}).o, {6, 10});
  Mask seen = prefix(2);
  seen.offset = 0;
  expect_values(reference::attention(t.q, t.k, t.v, {.mask = seen}).o, {10, 10});
}

TEST(Reference, RowWithoutKeysIsZero) {
  const Tiny t;
  const Mask nothing = lengths(tensor<int32_t>({0}, {1}));
  AttentionResult result = reference::attention(t.q, t.k, t.v, {.mask = nothing});
  expect_values(result.o, {0, 0});
  expect_values(result.lse, {kNone, kNone});
  result = reference::attention(t.q, t.k, t.v, {.mask = nothing, .sink = tensor<double>({0.25}, {1})});
  expect_values(result.o, {0, 0});
  expect_values(result.lse, {0.25, 0.25});
}

TEST(Reference, SinkTakesItsShare) {
  const Tiny t;
  const AttentionResult result = reference::attention(t.q, t.k, t.v, {.sink = tensor<double>({std::log(6.0)}, {1})});
  expect_values(result.o, {8.5, 8.5});
  expect_values(result.lse, {std::log(12.0), std::log(12.0)});
}

TEST(Reference, BiasOfMinusInfinityDropsEvenNan) {
  const Tiny t;
  t.k.data<double>()[2] = std::nan("");
  AttentionOptions options;
  options.bias.push_back(DenseBias{tensor<double>({0, 0, kNone}, {3})});
  expect_values(reference::attention(t.q, t.k, t.v, options).o, {10, 10});
}

TEST(Reference, SimilaritiesAreTheirFormulas) {
  const Tensor q = tensor<double>({3, 4}, {1, 1, 1, 2}), k = tensor<double>({4, 3, 0, 0}, {1, 1, 2, 2});
  const Tensor v = tensor<double>({1, 0}, {1, 1, 2, 1});
  const double c = std::exp(2 * 24.0 / 25), e = std::exp(-0.5 * 2 + 0.5 * 25);
  expect_values(reference::attention(q, k, v, {.similarity = CosineSimilarity{.tau = 2}}).o, {c / (c + 1)});
  expect_values(reference::attention(q, k, v, {.similarity = EuclideanSimilarity{.scale = 0.5F}}).o, {e / (e + 1)});
  const double capped = std::exp(2 * std::tanh(12.0));
  expect_values(reference::attention(q, k, v, {.similarity = DotSimilarity{.scale = 1}, .cap = 2}).o,
                {capped / (capped + 1)});
}

TEST(Reference, HeadMixJoinsTheScoresOfHeads) {
  const Tensor q = tensor<double>({1, 1}, {1, 2, 1, 1}), v = tensor<double>({1, 0, 1, 0}, {1, 2, 2, 1});
  const Tensor k = tensor<double>({std::log(2.0), 0, std::log(5.0), 0}, {1, 2, 2, 1});
  AttentionOptions options;
  options.score_mix = HeadMix{tensor<double>({1, 1, 0, 1}, {2, 2})};
  expect_values(reference::attention(q, k, v, options).o, {10 / 11.0, 5 / 6.0});
  options.score_mix = KeyMix{tensor<double>({0, 1, 0, 0}, {2, 2})};
  expect_values(reference::attention(q, k, v, options).o, {1 / 3.0, 1 / 6.0});
}

TEST(Reference, BucketsAreThoseOfT5) {
  const std::vector<int64_t> distances{0, -1, -7, -8, -11, -12, -16, -127, -128, 1, 7, 8, 500};
  const std::vector<int64_t> wanted{0, 1, 7, 8, 8, 9, 10, 15, 15, 17, 23, 24, 31};
  for (size_t n = 0; n < distances.size(); ++n) {
    EXPECT_EQ(reference::t5_bucket(distances[n], true, 32, 128), wanted[n]) << distances[n];
  }
  EXPECT_EQ(reference::t5_bucket(3, false, 32, 128), 0);
  EXPECT_EQ(reference::t5_bucket(-15, false, 32, 128), 15);
  EXPECT_EQ(reference::t5_bucket(-1000, false, 32, 128), 31);
}

// The published vectors of Philox4x32 with 7 rounds, for a counter of zeros and for the digits of pi.
TEST(Reference, DropoutDrawsFromPhilox) {
  const std::vector<uint32_t> zero{0x5f6fb709, 0x0d893f64, 0x4f121f81, 0x4f730a48};
  const std::vector<uint32_t> pi{0x4dfccaba, 0x190a87f0, 0xc47362ba, 0xb6b5242a};
  const uint64_t seed = 0x299f31d0a4093822;
  for (int64_t e = 0; e < 8; ++e) {
    EXPECT_EQ(reference::dropout_bits(0, 0, 0, 0, e), zero[e / 2] >> (16 * (e % 2)) & 0xFFFF) << e;
    const int64_t j = (int64_t{0x03707344} << 3) + e;
    EXPECT_EQ(reference::dropout_bits(seed, 0x243f6a88, 0x85a308d3, 0x13198a2e, j),
              pi[e / 2] >> (16 * (e % 2)) & 0xFFFF)
        << e;
  }
}

TEST(Reference, DropoutScalesByTheThresholdsOwnShare) {
  const int64_t keys = 64;
  const Tensor q = zeros({1, 1, 2, 1}, DType::f64), k = zeros({1, 1, keys, 1}, DType::f64);
  const Tensor v = zeros({1, 1, keys, keys}, DType::f64);
  for (int64_t j = 0; j < keys; ++j) v.data<double>()[j * keys + j] = 1;
  const float p = 0.3F;
  const auto o = values<double>(reference::attention(q, k, v, {.dropout = {.p = p, .seed = 5}}).o);
  const double threshold = std::round(p * 65536.0);
  for (int64_t i = 0; i < 2; ++i) {
    for (int64_t j = 0; j < keys; ++j) {
      const bool keeps = reference::dropout_bits(5, 0, 0, i, j) >= threshold;
      EXPECT_NEAR(o[i * keys + j], keeps ? 65536 / (65536 - threshold) / keys : 0, 1e-12);
    }
  }
  const auto none = values<double>(reference::attention(q, k, v, {.dropout = {.p = 1, .seed = 5}}).o);
  for (double x : none) EXPECT_EQ(x, 0);
}

TEST(Reference, MergeOfHalvesIsTheWhole) {
  const Tensor q = numbers({1, 2, 3, 4}, 1), k = numbers({1, 2, 7, 4}, 2), v = numbers({1, 2, 7, 3}, 3);
  const AttentionResult whole = reference::attention(q, k, v);
  const AttentionResult joined = reference::merge({reference::attention(q, k.slice(2, 0, 5), v.slice(2, 0, 5)),
                                                   reference::attention(q, k.slice(2, 5, 7), v.slice(2, 5, 7))});
  expect_values(joined.o, values<double>(whole.o));
  expect_values(joined.lse, values<double>(whole.lse));
}

TEST(Reference, WeightsAndStatisticsOfChosenRows) {
  const Tiny t;
  expect_values(reference::attention_weights(t.q, t.k, {}, {0}, {1}), {1 / 6.0, 2 / 6.0, 3 / 6.0});
  const AttentionStatistics s = reference::attention_statistics(t.q, t.k, {.mask = causal()}, 3);
  const double first = std::log(3.0) - 2 / 3.0 * std::log(2.0);
  const double second = std::log(6.0) / 6 + std::log(3.0) / 3 + std::log(2.0) / 2;
  expect_values(s.entropy, {first, second});
  expect_values(s.top_keys, {1, 0, -1, 2, 1, 0});
  expect_values(s.top_weights, {2 / 3.0, 1 / 3.0, 0, 3 / 6.0, 2 / 6.0, 1 / 6.0});
  expect_values(s.received, {1 / 3.0 + 1 / 6.0, 2 / 3.0 + 2 / 6.0, 3 / 6.0});
  expect_values(s.distance, {1 / 3.0, 2 / 3.0});
}

}  // namespace
}  // namespace mh
