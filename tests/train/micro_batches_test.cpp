// The batches of one step: each draws its own dropout, and together they count as one batch.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/tasks/pair_stepper.h"

namespace mh {
namespace {

// A learning rate of 0: every step sees the same weights, and losses differ by dropout alone.
PairStepperOptions still(float dropout) {
  PairStepperOptions options{.schedule = {.kind = ScheduleKind::constant, .rate = 0, .warmup = 0, .steps = 10}};
  options.model = {.vocabulary = 16,
                   .width = 16,
                   .heads = 2,
                   .feed_forward = 24,
                   .encoder_layers = 1,
                   .decoder_layers = 1,
                   .dropout = dropout,
                   .max_length = 16};
  return options;
}

PairBatch one_batch(const TransformerConfig& config) {
  static const SentencePair first{{4, 5, 6, 7}, {7, 6, 5, 4}}, second{{9, 8}, {8, 9, 10}};
  return pair_batch({&first, &second}, config);
}

TEST(MicroBatches, EachDrawsItsOwnDropout) {
  const PairStepperOptions options = still(0.3F);
  const PairBatch batch = one_batch(options.model);
  const double alone = PairStepper(options).step({batch}).loss, two = PairStepper(options).step({batch, batch}).loss,
               three = PairStepper(options).step({batch, batch, batch}).loss;
  // The first of several draws what it draws alone.
  const double second = 2 * two - alone, third = 3 * three - 2 * two;
  EXPECT_GT(std::abs(second - alone), 1e-3);
  EXPECT_GT(std::abs(third - alone), 1e-3);
  EXPECT_GT(std::abs(third - second), 1e-3);
}

TEST(MicroBatches, EachStepDrawsItsOwnDropout) {
  const PairStepperOptions options = still(0.3F);
  const PairBatch batch = one_batch(options.model);
  PairStepper stepper(options);
  const double first = stepper.step({batch}).loss, second = stepper.step({batch}).loss;
  EXPECT_GT(std::abs(first - second), 1e-3);
}

TEST(MicroBatches, WithoutDropoutTheSameBatchTwiceIsOne) {
  const PairStepperOptions options = still(0);
  const PairBatch batch = one_batch(options.model);
  const StepResult once = PairStepper(options).step({batch}), twice = PairStepper(options).step({batch, batch});
  EXPECT_NEAR(twice.loss, once.loss, 1e-6);
  EXPECT_NEAR(twice.nll, once.nll, 1e-6);
  EXPECT_NEAR(twice.norm, once.norm, 1e-5 * once.norm);
  EXPECT_EQ(twice.tokens, 2 * once.tokens);
}

}  // namespace
}  // namespace mh
