// Training steps: they learn, do not depend on threads, add up over batches, and go on from a saved state.
#include "multihead/train/stepper.h"

#include <gtest/gtest.h>

#include <cmath>

#include "multihead/base/parallel.h"
#include "multihead/base/random.h"
#include "tests/tasks/pair_stepper.h"

namespace mh {
namespace {

PairStepperOptions tiny(DType compute = DType::f32, float dropout = 0.1F) {
  PairStepperOptions options{.optimiser = {.clip = 1, .mean = 0.99},
                             .schedule = {.rate = 3e-3, .warmup = 10, .steps = 200},
                             .compute = compute};
  options.model = {.vocabulary = 24,
                   .width = 32,
                   .heads = 2,
                   .feed_forward = 48,
                   .encoder_layers = 1,
                   .decoder_layers = 1,
                   .dropout = dropout,
                   .max_length = 32};
  return options;
}

// Sentences of 2 to 8 tokens, each to itself backwards.
std::vector<SentencePair> reversals(uint64_t seed, int count) {
  Random random(seed);
  std::vector<SentencePair> pairs(static_cast<size_t>(count));
  for (auto& [source, target] : pairs) {
    for (int64_t n = 2 + random.below(7); n > 0; --n) source.push_back(static_cast<int32_t>(4 + random.below(20)));
    target.assign(source.rbegin(), source.rend());
  }
  return pairs;
}

PairBatch batch_of(const std::vector<SentencePair>& pairs, size_t begin, size_t end, const TransformerConfig& config) {
  std::vector<const SentencePair*> chosen;
  for (size_t n = begin; n < end; ++n) chosen.push_back(&pairs[n]);
  return pair_batch(chosen, config);
}

PairBatch batch_at(int64_t step, const TransformerConfig& config) {
  const std::vector<SentencePair> pairs = reversals(static_cast<uint64_t>(step), 16);
  return batch_of(pairs, 0, pairs.size(), config);
}

void expect_same_state(const PairStepper& a, const PairStepper& b) {
  const NamedTensors x = a.state(), y = b.state();
  ASSERT_EQ(x.size(), y.size());
  for (const auto& [name, tensor] : x) {
    const Tensor other = y.at(name);
    for (int64_t i = 0; i < tensor.count(); ++i)
      ASSERT_EQ(tensor.data<float>()[i], other.data<float>()[i]) << name << " " << i;
  }
}

class Precision : public testing::TestWithParam<DType> {};

TEST_P(Precision, LossFalls) {
  const PairStepperOptions options = tiny(GetParam(), 0);
  PairStepper stepper(options);
  double first = 0, last = 0;
  for (int64_t step = 0; step < 150; ++step) {
    const StepResult result = stepper.step({batch_at(step, options.model)});
    ASSERT_TRUE(std::isfinite(result.norm));
    if (step < 5) first += result.nll / 5;
    if (step >= 145) last += result.nll / 5;
  }
  EXPECT_GT(first, 2.5);
  EXPECT_LT(last, 0.7 * first);
}

TEST_P(Precision, StepsDoNotDependOnThreads) {
  const int before = threads();
  const PairStepperOptions options = tiny(GetParam());
  set_threads(1);
  PairStepper one(options);
  for (int64_t step = 0; step < 4; ++step) one.step({batch_at(step, options.model)});
  for (const int count : {2, 7}) {
    set_threads(count);
    PairStepper many(options);
    for (int64_t step = 0; step < 4; ++step) many.step({batch_at(step, options.model)});
    expect_same_state(one, many);
  }
  set_threads(before);
}

TEST_P(Precision, GoesOnFromASavedStateBitForBit) {
  const PairStepperOptions options = tiny(GetParam());
  PairStepper whole(options), part(options), rest(options);
  for (int64_t step = 0; step < 6; ++step) whole.step({batch_at(step, options.model)});
  for (int64_t step = 0; step < 3; ++step) part.step({batch_at(step, options.model)});
  NamedTensors saved;
  for (const auto& [name, tensor] : part.state()) saved[name] = tensor.clone();
  rest.restore(saved, part.steps(), part.optimiser().steps());
  for (int64_t step = 3; step < 6; ++step) rest.step({batch_at(step, options.model)});
  expect_same_state(whole, rest);
}

INSTANTIATE_TEST_SUITE_P(Each, Precision, testing::Values(DType::f32, DType::bf16));

TEST(Stepper, SeveralBatchesCountAsOne) {
  const PairStepperOptions options = tiny(DType::f32, 0);
  const std::vector<SentencePair> pairs = reversals(1, 12);
  PairStepper one(options), several(options);
  const StepResult a = one.step({batch_of(pairs, 0, 12, options.model)});
  const StepResult b = several.step({batch_of(pairs, 0, 3, options.model), batch_of(pairs, 3, 12, options.model)});
  EXPECT_NEAR(a.loss, b.loss, 1e-5);
  EXPECT_NEAR(a.norm, b.norm, 1e-4 * a.norm);
  EXPECT_EQ(a.tokens, b.tokens);
}

TEST(Stepper, DropoutDrawsAnewEveryStep) {
  PairStepperOptions options = tiny(DType::f32, 0.5F);
  options.schedule.rate = 0;
  PairStepper stepper(options);
  const PairBatch batch = batch_at(0, options.model);
  const double first = stepper.step({batch}).loss, second = stepper.step({batch}).loss;
  EXPECT_NE(first, second);
}

}  // namespace
}  // namespace mh
