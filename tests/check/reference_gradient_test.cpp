// The reference's gradients judged by finite differences, for every differentiable input and every family of options.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "multihead/check/problem.h"
#include "multihead/check/reference.h"
#include "tests/check/numbers.h"

namespace mh {
namespace {

using reference::values;

struct Family {
  std::string label;
  std::function<void(AttentionOptions&)> set;
  bool packed = false;
};

constexpr int64_t kB = 2, kH = 4, kHkv = 2, kTq = 3, kTk = 5, kDk = 3, kDv = 2;

Tensor coin_flips(const Shape& shape, uint64_t seed) {
  const std::vector<double> x = values<double>(numbers(shape, seed));
  Tensor out = zeros(shape, DType::u8);
  for (size_t n = 0; n < x.size(); ++n) out.data<uint8_t>()[n] = x[n] > -0.3;
  return out;
}

std::vector<Family> families() {
  const auto dense = [](const Shape& shape) {
    return [=](AttentionOptions& o) { o.bias.push_back(DenseBias{numbers(shape, 5)}); };
  };
  const auto cosine = [](AttentionOptions& o) { o.similarity = CosineSimilarity{.taus = numbers({kH}, 6)}; };
  const auto alibi = [](AttentionOptions& o) { o.bias.push_back(AlibiBias{numbers({kH}, 7)}); };
  const auto t5 = [](int64_t buckets, bool both) {
    return [=](AttentionOptions& o) {
      o.bias.push_back(T5Bias{.table = numbers({buckets, kH}, 8), .bidirectional = both, .max_distance = 5});
    };
  };
  const auto sink = [](AttentionOptions& o) { o.sink = numbers({kH}, 9); };
  const auto drops = [](AttentionOptions& o) { o.dropout = {.p = 0.4F, .seed = 77}; };
  return {
      {"plain", [](AttentionOptions&) {}},
      {"scale", [](AttentionOptions& o) { o.similarity = DotSimilarity{.scale = 0.7F}; }},
      {"causal", [](AttentionOptions& o) { o.mask = causal(); }},
      {"causal at an offset before the keys", [](AttentionOptions& o) { o.mask = causal(-2); }},
      {"offsets",
       [](AttentionOptions& o) {
         o.mask = causal(tensor<int32_t>({0, 3}, {2}));
       }},
      {"window", [](AttentionOptions& o) { o.mask = window(1, 1); }},
      {"lengths",
       [](AttentionOptions& o) {
         o.mask = lengths(tensor<int32_t>({0, 3}, {2}));
       }},
      {"causal lengths with sink",
       [=](AttentionOptions& o) {
         o.mask = causal() & lengths(tensor<int32_t>({2, 4}, {2}));
         sink(o);
       }},
      {"prefix", [](AttentionOptions& o) { o.mask = prefix(3) & window(2, -1); }},
      {"documents",
       [](AttentionOptions& o) {
         o.mask = documents(tensor<int32_t>({0, 0, 1, 1, 1, 4, 4, 4, 4, 2}, {2, 5}));
       }},
      {"keep and drop",
       [](AttentionOptions& o) {
         o.mask = keep(coin_flips({kB, 1, kTq, kTk}, 3)) & drop(tensor<uint8_t>({0, 0, 1, 0, 0}, {5}));
       }},
      {"dense bias", dense({kB, kH, kTq, kTk})},
      {"bias over keys", dense({kTk})},
      {"bias over heads", dense({kH, 1, kTk})},
      {"bias over the batch", dense({kB, 1, kTq, 1})},
      {"alibi", alibi},
      {"t5 in two directions", t5(8, true)},
      {"t5 in one direction", t5(4, false)},
      {"euclidean", [](AttentionOptions& o) { o.similarity = EuclideanSimilarity{}; }},
      {"cosine", cosine},
      {"cap", [](AttentionOptions& o) { o.cap = 0.8F; }},
      {"sink", sink},
      {"dropout", drops},
      {"head mix",
       [](AttentionOptions& o) {
         o.score_mix = HeadMix{numbers({kH, kH}, 10)};
       }},
      {"key mix",
       [](AttentionOptions& o) {
         o.score_mix = KeyMix{numbers({kTk, kTk}, 11)};
       }},
      {"cosine, cap, causal, dense bias, t5, sink, dropout, head mix",
       [=](AttentionOptions& o) {
         cosine(o);
         o.cap = 1.5F;
         o.mask = causal();
         dense({kH, kTq, kTk})(o);
         t5(8, true)(o);
         sink(o);
         drops(o);
         o.score_mix = HeadMix{numbers({kH, kH}, 12)};
       }},
      {"packed with alibi, euclidean and sink",
       [=](AttentionOptions& o) {
         o.packed = Packed{tensor<int32_t>({0, 2, 6}, {3}), tensor<int32_t>({0, 5, 10}, {3})};
         o.similarity = EuclideanSimilarity{.scale = 0.3F};
         o.mask = causal();
         alibi(o);
         sink(o);
       },
       true},
  };
}

struct Inputs {
  Tensor q, k, v, d_o, d_lse;
  AttentionOptions options;
};

Inputs inputs_of(const Family& family) {
  Inputs in;
  family.set(in.options);
  const auto shape = [&](int64_t heads, int64_t length, int64_t width) {
    return family.packed ? Shape{kB * length, heads, width} : Shape{kB, heads, length, width};
  };
  in.q = numbers(shape(kH, kTq, kDk), 1);
  in.k = numbers(shape(kHkv, kTk, kDk), 2);
  in.v = numbers(shape(kHkv, kTk, kDv), 3);
  in.d_o = numbers(shape(kH, kTq, kDv), 4);
  in.d_lse = family.packed ? numbers({kH, kB * kTq}, 5) : numbers({kB, kH, kTq}, 5);
  return in;
}

double loss(const Inputs& in) {
  const AttentionResult result = reference::attention(in.q, in.k, in.v, in.options);
  const auto o = values<double>(result.o), lse = values<double>(result.lse);
  const auto d_o = values<double>(in.d_o), d_lse = values<double>(in.d_lse);
  double sum = 0;
  for (size_t n = 0; n < o.size(); ++n) sum += o[n] * d_o[n];
  for (size_t n = 0; n < lse.size(); ++n) sum += lse[n] == kNone ? 0 : lse[n] * d_lse[n];
  return sum;
}

void expect_differences_match(const Inputs& in, const Tensor& x, const Tensor& dx, const std::string& what) {
  ASSERT_TRUE(dx) << what;
  ASSERT_EQ(x.count(), dx.count()) << what;
  const auto expected = values<double>(dx);
  double largest = 0, error = 0;
  for (int64_t n = 0; n < x.count(); ++n) {
    double* element = x.data<double>() + n;
    const double before = *element, step = 1e-5;
    *element = before + step;
    const double above = loss(in);
    *element = before - step;
    const double below = loss(in);
    *element = before;
    const double slope = (above - below) / (2 * step);
    largest = std::max(largest, std::abs(slope));
    error = std::max(error, std::abs(slope - expected[n]));
  }
  EXPECT_LE(error, 1e-6 * largest + 1e-9) << what;
}

TEST(ReferenceGradient, MatchesFiniteDifferences) {
  for (const Family& family : families()) {
    const Inputs in = inputs_of(family);
    const auto grads = reference::attention_backward({in.q, in.k, in.v, {}}, in.d_o, in.d_lse, in.options);
    expect_differences_match(in, in.q, grads.dq, family.label + ": q");
    expect_differences_match(in, in.k, grads.dk, family.label + ": k");
    expect_differences_match(in, in.v, grads.dv, family.label + ": v");
    for (size_t n = 0; n < in.options.bias.size(); ++n) {
      const Bias& bias = in.options.bias[n];
      if (const auto* dense = std::get_if<DenseBias>(&bias)) {
        expect_differences_match(in, dense->values, grads.dbias[n], family.label + ": bias");
      } else if (const auto* alibi = std::get_if<AlibiBias>(&bias)) {
        expect_differences_match(in, alibi->slopes, grads.dbias[n], family.label + ": slopes");
      } else {
        expect_differences_match(in, std::get<T5Bias>(bias).table, grads.dbias[n], family.label + ": table");
      }
    }
    if (in.options.sink) expect_differences_match(in, in.options.sink, grads.dsink, family.label + ": sink");
    if (const auto* cosine = std::get_if<CosineSimilarity>(&in.options.similarity)) {
      expect_differences_match(in, cosine->taus, grads.dtau, family.label + ": tau");
    }
    if (const auto* mix = std::get_if<HeadMix>(&in.options.score_mix)) {
      expect_differences_match(in, mix->matrix, grads.dmix, family.label + ": head mix");
    }
    if (const auto* mix = std::get_if<KeyMix>(&in.options.score_mix)) {
      expect_differences_match(in, mix->matrix, grads.dmix, family.label + ": key mix");
    }
  }
}

TEST(ReferenceGradient, OfMergeMatchesFiniteDifferences) {
  std::vector<AttentionResult> parts;
  for (uint64_t n = 0; n < 3; ++n) parts.push_back({numbers({1, 2, 3, 2}, n), numbers({1, 2, 3}, n + 10)});
  const AttentionResult weights{numbers({1, 2, 3, 2}, 20), numbers({1, 2, 3}, 21)};
  const auto merged_loss = [&] {
    const AttentionResult joined = reference::merge(parts);
    const auto o = values<double>(joined.o), lse = values<double>(joined.lse);
    const auto wo = values<double>(weights.o), wl = values<double>(weights.lse);
    double sum = 0;
    for (size_t n = 0; n < o.size(); ++n) sum += o[n] * wo[n];
    for (size_t n = 0; n < lse.size(); ++n) sum += lse[n] * wl[n];
    return sum;
  };
  const auto grads = reference::merge_backward(parts, weights);
  for (size_t part = 0; part < parts.size(); ++part) {
    for (bool of_lse : {false, true}) {
      const Tensor& x = of_lse ? parts[part].lse : parts[part].o;
      const auto expected = values<double>(of_lse ? grads[part].lse : grads[part].o);
      for (int64_t n = 0; n < x.count(); ++n) {
        double* element = x.data<double>() + n;
        const double before = *element, step = 1e-5;
        *element = before + step;
        const double above = merged_loss();
        *element = before - step;
        const double below = merged_loss();
        *element = before;
        EXPECT_NEAR((above - below) / (2 * step), expected[n], 1e-8);
      }
    }
  }
}

}  // namespace
}  // namespace mh
