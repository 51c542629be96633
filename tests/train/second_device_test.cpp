// Training on a second device, whose memory nobody but its kernels may touch: the bits of training on the CPU.
#include <gtest/gtest.h>

#include <cstring>

#include "tests/harness/host2.h"
#include "tests/tasks/pair_stepper.h"

namespace mh {
namespace {

const std::vector<SentencePair>& some_pairs() {
  static const std::vector<SentencePair> pairs{{{5, 6, 7}, {7, 6, 5}}, {{8}, {8}}, {{9, 4, 5, 6}, {6, 5, 4, 9}}};
  return pairs;
}

// The state after some steps, on the CPU.
NamedTensors trained(PairStepperOptions options, Device device) {
  options.device = device;
  PairStepper stepper(options);
  std::vector<const SentencePair*> all;
  for (const SentencePair& pair : some_pairs()) all.push_back(&pair);
  for (int step = 0; step < 3; ++step) stepper.step({pair_batch(all, options.model)});
  NamedTensors state = stepper.state();
  for (auto& [name, tensor] : state) {
    EXPECT_EQ(tensor.device(), device) << name;
    tensor = tensor.to(Device{});
  }
  return state;
}

TEST(SecondDevice, TrainsToTheBitsOfTheCpu) {
  harness::bring_host2();
  for (const DType compute : {DType::f32, DType::bf16}) {
    for (const ModelPositions positions : {ModelPositions::sinusoidal, ModelPositions::rotary, ModelPositions::t5}) {
      PairStepperOptions options{.optimiser = {.clip = 1, .mean = 0.99},
                                 .schedule = {.rate = 3e-3, .warmup = 10, .steps = 200},
                                 .compute = compute};
      options.model = {.vocabulary = 24,
                       .width = 32,
                       .heads = 2,
                       .feed_forward = 48,
                       .encoder_layers = 1,
                       .decoder_layers = 1,
                       .dropout = 0.1F,
                       .max_length = 32};
      options.model.positions = positions;
      const int64_t calls = harness::host2_calls();
      const NamedTensors here = trained(options, Device{}), there = trained(options, harness::kHost2);
      EXPECT_GT(harness::host2_calls(), calls);
      ASSERT_EQ(here.size(), there.size());
      for (const auto& [name, tensor] : here) {
        const Tensor& other = there.at(name);
        EXPECT_EQ(std::memcmp(tensor.data<float>(), other.data<float>(), static_cast<size_t>(tensor.count()) * 4), 0)
            << name;
      }
    }
  }
}

}  // namespace
}  // namespace mh
