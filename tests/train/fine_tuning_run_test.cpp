// Fine-tuning: layers that stay as they are, and layers that learn slower.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "multihead/tasks/task_type.h"
#include "tests/train/observed_run.h"

namespace mh {
namespace {

using Weights = std::map<std::string, Tensor>;

class FineTuning : public testing::TestWithParam<ModelKind> {
 protected:
  FineTuning() {
    std::string texts;
    for (int n = 0; n < 40; ++n)
      texts += fmt::format("{} film {}\t{}\n", n % 2 ? "good" : "bad", n, n % 2 ? "yes" : "no");
    put_text(folder_ / "texts.tsv", texts);
  }
  TrainConfig config(const std::string& output, int64_t steps) const {
    TrainConfig c;
    c.task.kind = TaskKind::classify;
    c.recurrent.kind = GetParam();
    c.model = {.vocabulary = 0,
               .width = 16,
               .heads = 2,
               .feed_forward = 24,
               .encoder_layers = 2,
               .middle = Middle::gelu,
               .positions = ModelPositions::learned,
               .max_length = 16};
    c.tokenizer = {.kind = TokenizerKind::words, .min_count = 1, .lowercase = true};
    c.data.train = c.data.valid = folder_ / "texts.tsv";
    c.data.max_length = 16;
    c.data.examples_per_batch = 8;
    c.optimizer.learning_rate = 1e-3;
    c.optimizer.warmup = 0;
    c.optimizer.schedule = ScheduleKind::constant;
    c.train.output = folder_ / output;
    c.train.steps = steps;
    c.train.save_every = 2;
    c.train.threads = 1;
    return c;
  }
  TrainConfig from_first(const std::string& output, int64_t steps) const {
    TrainConfig c = config(output, steps);
    c.start.from = folder_ / "first";
    return c;
  }
  bool is_own() const { return GetParam() == ModelKind::transformer; }
  // A tensor of the head, of the last layer, of the first, and the words.
  std::vector<std::string> from_the_top() const {
    if (is_own())
      return {"classifier.weight", "encoder.layers.1.linear1.weight", "encoder.layers.0.linear1.weight",
              "embedding.weight"};
    return {"classifier.weight", "bert.encoder.layer.1.intermediate.dense.weight",
            "bert.encoder.layer.0.intermediate.dense.weight", "bert.embeddings.word_embeddings.weight"};
  }
  static double largest_move(const Weights& before, const Weights& after, const std::string& name) {
    const Tensor &a = before.at(name), &b = after.at(name);
    double out = 0;
    for (int64_t i = 0; i < a.count(); ++i)
      out = std::max(out, std::abs(double{a.data<float>()[i]} - b.data<float>()[i]));
    return out;
  }
  TemporaryFolder folder_;
};

TEST_P(FineTuning, FrozenLayersKeepTheirBitsAndHaveNoMoments) {
  const Weights start = observe(config("first", 3)).weights();
  TrainConfig c = from_first("frozen", 4);
  c.train.frozen = 1;
  c.train.ema = 0.9;
  const Seen seen = observe(c);
  ASSERT_EQ(seen.refusal, "no refusal");
  const auto names = from_the_top();
  EXPECT_GT(largest_move(start, seen.weights(), names[0]), 0);
  EXPECT_GT(largest_move(start, seen.weights(), names[1]), 0);
  int kept = 0;
  for (const auto& [name, tensor] : start) {
    const bool below = name.find("embedding") != std::string::npos || name.starts_with("positions") ||
                       name.find(".layers.0.") != std::string::npos || name.find(".layer.0.") != std::string::npos;
    if (!below) continue;
    ++kept;
    EXPECT_EQ(largest_move(start, seen.weights(), name), 0) << name;
  }
  EXPECT_GE(kept, 14);
  const NamedTensors state = read_checkpoint(list_checkpoints(c.train.output + "/checkpoints").front()).tensors;
  int moments = 0;
  for (const auto& [name, tensor] : state) {
    if (!name.starts_with("adam.")) continue;
    ++moments;
    EXPECT_EQ(name.find("embedding"), std::string::npos) << name;
    EXPECT_EQ(name.find(".layers.0."), std::string::npos) << name;
  }
  EXPECT_GT(moments, 3 * 12);
}

TEST_P(FineTuning, AResumedRunHasTheBitsOfAWholeOne) {
  observe(config("first", 3));
  for (const DType precision : {DType::f32, DType::bf16}) {
    const std::string type(name(precision));
    TrainConfig whole = from_first("whole" + type, 6);
    whole.train.frozen = 1;
    whole.train.layer_decay = 0.5;
    whole.train.precision = precision;
    ASSERT_EQ(observe(whole).refusal, "no refusal");
    TrainConfig parts = whole;
    parts.train.output = folder_ / ("parts" + type);
    TrainRequest request{.config = parts};
    int64_t steps = 0;
    request.events.on_step = [&](const TrainStep&) { ++steps; };
    request.events.stop_requested = [&] { return steps == 3; };
    EXPECT_TRUE(train(request).stopped);
    EXPECT_FALSE(train({.config = parts, .resume = true}).stopped);
    EXPECT_EQ(text_of(whole.train.output + "/model.safetensors"), text_of(parts.train.output + "/model.safetensors"));
  }
}

// Adam's first step moves every weight by its rate, whatever its gradient.
TEST_P(FineTuning, EveryLayerLearnsSlowerThanTheOneAbove) {
  const Weights start = observe(config("first", 3)).weights();
  TrainConfig c = from_first("decay", 1);
  c.train.layer_decay = 0.5;
  c.optimizer.weight_decay = 0;
  const Weights now = observe(c).weights();
  double rate = 1e-3;
  for (const std::string& name : from_the_top()) {
    EXPECT_NEAR(largest_move(start, now, name), rate, 1e-2 * rate) << name;
    rate /= 2;
  }
}

TEST_P(FineTuning, WhatMakesNoSenseIsRefused) {
  observe(config("first", 1));
  TrainConfig c = from_first("x", 1);
  c.train.frozen = 3;
  EXPECT_EQ(observe(c).refusal, "config: train.frozen is 3, and the model has 2 layers; expected at most as many");
  c = config("y", 1);
  c.train.frozen = 1;
  EXPECT_EQ(observe(c).refusal, "config: train.frozen is 1, and model.from names no model whose weights could be kept");
  c = from_first("z", 1);
  c.task.kind = TaskKind::translation;
  c.recurrent.kind = ModelKind::lstm;
  c.train.layer_decay = 0.9;
  EXPECT_THAT(observe(c).refusal, testing::HasSubstr("model.kind names a recurrent net; expected 0 and 1"));
}

INSTANTIATE_TEST_SUITE_P(Each, FineTuning, testing::Values(ModelKind::transformer, ModelKind::bert));

}  // namespace
}  // namespace mh
