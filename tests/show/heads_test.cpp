// What a head is worth: taking it out is zeroing its columns of the output projection; gradients are those of
// differences.
#include "multihead/show/heads.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/generate/tiny_model.h"
#include "tests/harness/refusal.h"

namespace mh {
namespace {

std::vector<SentencePair> some_pairs() {
  return {{{5, 6, 7}, {8, 9}}, {{10}, {11, 12, 13, 14}}, {{15, 16, 17, 18, 19}, {5, 7, 9}}};
}

// Without the kinks of relu, so that differences are near the derivative.
Transformer smooth_model() {
  return Transformer({.vocabulary = 30,
                      .width = 24,
                      .heads = 3,
                      .feed_forward = 20,
                      .encoder_layers = 1,
                      .decoder_layers = 2,
                      .middle = Middle::gelu,
                      .max_length = 40},
                     std::make_shared<ParamStore>(ParamStoreOptions{.seed = 3}));
}

double loss_of(const Transformer& model, const std::vector<SentencePair>& pairs) {
  std::vector<const SentencePair*> all;
  for (const SentencePair& pair : pairs) all.push_back(&pair);
  Pass pass = Pass::inference();
  const CrossEntropy loss = model.loss(pair_batch(all, model.config()), pass, 0);
  return loss.nll.item({}) / static_cast<double>(loss.counted);
}

// The columns of the output projection that read the head, times `factor`.
void scale_columns(const Transformer& model, const HeadName& head, float factor) {
  const std::string stack = head.kind == AttentionKind::encoder ? "encoder" : "decoder";
  const std::string layer = head.kind == AttentionKind::cross ? "multihead_attn" : "self_attn";
  const std::string name = stack + ".layers." + std::to_string(head.layer) + "." + layer + ".out_proj.weight";
  for (const auto& param : model.params().all()) {
    if (param->name != name) continue;
    const int64_t width = param->value.size(1) / model.config().heads;
    for (int64_t i = 0; i < param->value.size(0); ++i)
      for (int64_t j = head.head * width; j < (head.head + 1) * width; ++j)
        param->value.data<float>()[i * param->value.size(1) + j] *= factor;
    return;
  }
  FAIL() << name;
}

TEST(Heads, TakingOneOutIsZeroingItsColumns) {
  const Transformer whole = test::tiny_model(30);
  const HeadReport report = head_importance(whole, some_pairs());
  ASSERT_EQ(report.heads.size(), 3u * (1 + 2 + 2));
  EXPECT_EQ(report.sentences, 3);
  EXPECT_EQ(report.tokens, 2 + 4 + 3 + 3);
  EXPECT_NEAR(report.loss, loss_of(whole, some_pairs()), 1e-6);
  for (const HeadImportance& each : report.heads) {
    const Transformer without = test::tiny_model(30);
    scale_columns(without, each.head, 0);
    EXPECT_NEAR(each.loss_added, loss_of(without, some_pairs()) - report.loss, 1e-6) << to_string(each.head);
    EXPECT_GE(each.entropy, 0);
    EXPECT_GT(each.confidence, 0);
    EXPECT_LE(each.confidence, 1);
  }
}

// Central differences of a loss of f32 numbers, sums of some 40 nats: 1e-5 / 1e-2 of rounding, h² of curvature.
TEST(Heads, GradientsAreThoseOfFiniteDifferencesOfEverySentence) {
  const std::vector<SentencePair> pairs = some_pairs();
  const HeadReport report = head_importance(smooth_model(), pairs);
  for (const HeadImportance& each : report.heads) {
    double mean = 0;
    for (const SentencePair& pair : pairs) {
      double ends[2];
      for (const int side : {0, 1}) {
        const Transformer model = smooth_model();
        scale_columns(model, each.head, side == 0 ? 0.99F : 1.01F);
        ends[side] = loss_of(model, {pair}) * static_cast<double>(pair.second.size() + 1);
      }
      mean += std::abs(ends[1] - ends[0]) / 0.02 / static_cast<double>(pairs.size());
    }
    EXPECT_NEAR(each.gradient, mean, 2e-3) << to_string(each.head);
  }
}

TEST(Heads, BatchesChangeNothing) {
  const Transformer model = test::tiny_model(30);
  const HeadReport one = head_importance(model, some_pairs()),
                   many = head_importance(model, some_pairs(), {.tokens_per_batch = 1});
  EXPECT_NEAR(one.loss, many.loss, 1e-6);
  for (size_t n = 0; n < one.heads.size(); ++n) {
    EXPECT_EQ(one.heads[n].head, many.heads[n].head);
    EXPECT_NEAR(one.heads[n].loss_added, many.heads[n].loss_added, 1e-6);
    EXPECT_NEAR(one.heads[n].gradient, many.heads[n].gradient, 1e-4);
    EXPECT_NEAR(one.heads[n].entropy, many.heads[n].entropy, 1e-5);
  }
}

// Runs one call of attention of 2 sequences through the observer.
Tensor ablated(Ablation how, bool causal_mask, const Tensor& q, const Tensor& k, const Tensor& v,
               const Tensor& starts) {
  AttentionOptions options{.mask = causal_mask ? causal() : Mask()};
  options.packed = Packed{starts, starts};
  AttendedCall call{.call = {q, k, v, attention(q, k, v, options)}, .options = options};
  AblatedHeads observer({{causal_mask ? AttentionKind::decoder : AttentionKind::encoder, 0, 1}}, how);
  return observer.attended(call);
}

TEST(Heads, UniformReadsTheMeanOfWhatIsSeenAndMeanTheMeanOfTheRows) {
  const Tensor q = randn({5, 2, 3}, 1), k = randn({5, 2, 3}, 2), v = randn({5, 2, 3}, 3);
  const Tensor starts = tensor<int32_t>({0, 2, 5}, {3}), zero = zeros({5, 2, 3});
  for (const bool causal_mask : {false, true}) {
    // Queries of 0 give equal weights: what `uniform` stands for.
    const Tensor wanted = ablated(Ablation::zero, causal_mask, zero, k, v, starts);
    AttentionOptions options{.mask = causal_mask ? causal() : Mask()};
    options.packed = Packed{starts, starts};
    const Tensor equal = attention(zero, k, v, options).o, plain = attention(q, k, v, options).o;
    const Tensor uniform = ablated(Ablation::uniform, causal_mask, q, k, v, starts);
    const Tensor mean = ablated(Ablation::mean, causal_mask, q, k, v, starts);
    for (int64_t i = 0; i < 5; ++i) {
      for (int64_t d = 0; d < 3; ++d) {
        EXPECT_EQ(wanted.item({i, 1, d}), 0);
        EXPECT_EQ(uniform.item({i, 0, d}), plain.item({i, 0, d}));
        EXPECT_NEAR(uniform.item({i, 1, d}), equal.item({i, 1, d}), 1e-6);
        double sum = 0;
        for (int64_t n = 0; n < 5; ++n) sum += plain.item({n, 1, d}) / 5;
        EXPECT_NEAR(mean.item({i, 1, d}), sum, 1e-6);
      }
    }
  }
}

TEST(Heads, WhatDoesNotExistIsRefused) {
  const Tensor x = randn({2, 2, 3}, 1), starts = tensor<int32_t>({0, 2}, {2});
  AttentionOptions options;
  options.packed = Packed{starts, starts};
  AttendedCall call{.call = {x, x, x, attention(x, x, x, options)}, .options = options};
  AblatedHeads observer({{AttentionKind::encoder, 0, 2}});
  EXPECT_TRUE(refusal_of([&] { observer.attended(call); }).says("encoder 1.3 does not exist; the layer has 2 heads"));
  EXPECT_TRUE(refusal_of([] { head_importance(test::tiny_model(30), {}); }).says("no pair"));
}

}  // namespace
}  // namespace mh
