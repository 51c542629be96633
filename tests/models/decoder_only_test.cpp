// The decoder-only model: it learns a language down to its entropy, and steps over kept keys give the whole pass.
#include "multihead/models/decoder_only.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "multihead/autograd/tape.h"
#include "multihead/base/random.h"
#include "multihead/optim/adamw.h"
#include "tests/harness/refusal.h"

namespace mh {
namespace {

DecoderOnlyConfig small_config(ModelPositions positions) {
  return {.vocabulary = 20,
          .width = 24,
          .heads = 3,
          .feed_forward = 32,
          .layers = 2,
          .positions = positions,
          .dropout = 0,
          .max_length = 24};
}

double largest_difference(const Tensor& a, const Tensor& b) {
  EXPECT_EQ(a.shape(), b.shape());
  double most = 0;
  for (int64_t r = 0; r < a.size(0); ++r)
    for (int64_t c = 0; c < a.size(1); ++c) most = std::max(most, std::abs(a.item({r, c}) - b.item({r, c})));
  return most;
}

class DecoderOnlyPositions : public testing::TestWithParam<ModelPositions> {};

// Logits are about 1; float sums of some 24 to 32 terms in another order differ by less than 1e-5.
TEST_P(DecoderOnlyPositions, StepsBehindPromptsOfUnlikeLengthsGiveTheWholePass) {
  DecoderOnly model(small_config(GetParam()), std::make_shared<ParamStore>());
  const std::vector<std::vector<int32_t>> texts{{1, 5, 6, 7, 8, 9, 10}, {1, 11, 12}, {1, 13, 14, 15, 16}};
  const std::vector<size_t> prompts{5, 0, 2};  // tokens that are read before the first step
  for (const bool packed : {false, true}) {
    if (packed) model.pack();
    Pass pass = Pass::inference();
    std::vector<std::vector<int32_t>> read;
    for (size_t b = 0; b < 3; ++b) read.emplace_back(texts[b].begin(), texts[b].begin() + static_cast<int>(prompts[b]));
    AttentionState state = model.begin(token_batch(read), AttentionState::room({5, 0, 2}, 1, 3), pass);
    for (size_t t = 0; t < 2; ++t) {
      std::vector<int32_t> ids;
      for (size_t b = 0; b < 3; ++b) ids.push_back(texts[b][prompts[b] + t]);
      const Tensor logits = model.logits(model.step(state, ids, pass));
      for (size_t b = 0; b < 3; ++b) {
        const auto row = static_cast<int64_t>(prompts[b] + t);
        const Tensor whole = model.logits(token_batch({texts[b]}), pass);
        const auto n = static_cast<int64_t>(b);
        EXPECT_LT(largest_difference(logits.slice(0, n, n + 1), whole.slice(0, row, row + 1)), 1e-5) << b << " " << t;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Each, DecoderOnlyPositions,
                         testing::Values(ModelPositions::sinusoidal, ModelPositions::learned, ModelPositions::rotary,
                                         ModelPositions::alibi, ModelPositions::t5));

TEST(DecoderOnly, ATokenDoesNotSeeLaterOnes) {
  const DecoderOnly model(small_config(ModelPositions::rotary), std::make_shared<ParamStore>());
  Pass pass = Pass::inference();
  const Tensor a = model.logits(token_batch({{1, 5, 6, 7}}), pass), b = model.logits(token_batch({{1, 5, 6, 9}}), pass);
  EXPECT_EQ(largest_difference(a.slice(0, 0, 3), b.slice(0, 0, 3)), 0);
  EXPECT_GT(largest_difference(a.slice(0, 3, 4), b.slice(0, 3, 4)), 1e-3);
}

TEST(DecoderOnly, HypothesesGoOnFromTheirParents) {
  const DecoderOnly model(small_config(ModelPositions::learned), std::make_shared<ParamStore>());
  Pass pass = Pass::inference();
  AttentionState state = model.begin(token_batch({{1, 4, 5, 6, 7}, {1}}), AttentionState::room({5, 1}, 2, 4), pass);
  model.step(state, {8, 9}, pass);
  state.choose({0, 0, 1}, {2, 1});
  model.step(state, {10, 11, 12}, pass);
  state.choose({2, 1, 0}, {0, 3});
  const Tensor logits = model.logits(model.step(state, {13, 14, 15}, pass));
  const std::vector<std::vector<int32_t>> texts{{1, 9, 12, 13}, {1, 4, 5, 6, 7, 8, 11, 14}, {1, 4, 5, 6, 7, 8, 10, 15}};
  for (size_t n = 0; n < 3; ++n) {
    const Tensor whole = model.logits(token_batch({texts[n]}), pass);
    const auto row = static_cast<int64_t>(n);
    EXPECT_LT(largest_difference(logits.slice(0, row, row + 1), whole.slice(0, whole.size(0) - 1, whole.size(0))),
              1e-5);
  }
  EXPECT_TRUE(refusal_of([&] { state.choose({3}, {0, 1}); }).says("hypothesis 3 is not there; expected 0 to 2"));
}

// After x comes x + 1 or x + 2 (around a circle of 8), with equal probability: ln 2 per token, and less is luck.
TEST(DecoderOnly, LearnsALanguageDownToItsEntropy) {
  DecoderOnlyConfig config = small_config(ModelPositions::learned);
  const auto store = std::make_shared<ParamStore>();
  const DecoderOnly model(config, store);
  std::vector<Learned> learned;
  for (const auto& param : store->all()) learned.push_back({param->name, param->value});
  AdamW optimiser(std::move(learned), {});
  Random random(3);
  double recent = 0;
  for (int step = 0; step < 300; ++step) {
    std::vector<std::vector<int32_t>> inputs;
    std::vector<int32_t> labels;
    for (int n = 0; n < 16; ++n) {
      std::vector<int32_t> text{static_cast<int32_t>(3 + random.below(8))};
      for (int t = 0; t < 16; ++t)
        text.push_back(static_cast<int32_t>(3 + (text.back() - 3 + 1 + static_cast<int32_t>(random.below(2))) % 8));
      inputs.emplace_back(text.begin(), text.end() - 1);
      labels.insert(labels.end(), text.begin() + 1, text.end());
    }
    Tape tape;
    Pass pass = Pass::training(static_cast<uint64_t>(step));
    const CrossEntropy loss = model.loss(token_batch(inputs), tensor<int32_t>(labels, {16 * 16}), pass);
    if (step == 0) {
      EXPECT_GT(loss.loss.item({}), 2.5);
    }
    if (step >= 290) recent += loss.loss.item({}) / 10;
    optimiser.step(tape.backward(loss.loss), 3e-3);
  }
  EXPECT_GT(recent, std::log(2.0) - 0.02);
  EXPECT_LT(recent, std::log(2.0) + 0.05);
}

TEST(DecoderOnly, RefusesWhatDoesNotFit) {
  const DecoderOnly model(small_config(ModelPositions::learned), std::make_shared<ParamStore>());
  Pass pass = Pass::inference();
  const std::vector<int32_t> longer(25, 4);
  EXPECT_TRUE(refusal_of([&] { model.hidden(token_batch({longer}), pass); }).says("25 tokens; expected at most 24"));
  EXPECT_TRUE(refusal_of([] {
                DecoderOnly({.layers = 0}, std::make_shared<ParamStore>());
              }).says("0 layers; expected 1 or more"));
}

}  // namespace
}  // namespace mh
