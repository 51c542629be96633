// A run up to its first step: the numbers are those of a run, and nothing is written.
#include "multihead/train/dry_run.h"

#include <gtest/gtest.h>

#include <cmath>

#include "multihead/io/checkpoint.h"
#include "tests/harness/refusal.h"
#include "tests/harness/temporary_folder.h"

namespace mh {
namespace {

class DryRuns : public testing::Test {
 protected:
  DryRuns() {
    std::string text;
    for (int i = 0; i < 60; ++i) text += fmt::format("the house number {}\tdas Haus Nummer {}\n", i, i);
    put_text(folder_ / "train.tsv", text);
    put_text(folder_ / "valid.tsv", "the house\tdas Haus\n");
    config_.data.train = folder_ / "train.tsv";
    config_.data.valid = folder_ / "valid.tsv";
    config_.data.tokens_per_batch = 100;
    config_.tokenizer.vocabulary = 300;
    config_.model.width = 32;
    config_.model.feed_forward = 48;
    config_.model.encoder_layers = config_.model.decoder_layers = 1;
    config_.train.output = folder_ / "out";
    config_.train.epochs = 3;
  }
  TemporaryFolder folder_;
  TrainConfig config_;
};

TEST_F(DryRuns, TakesTheFirstStepAndWritesNothing) {
  TrainStart start;
  const DryRun dry =
      dry_run({.config = config_, .events = {.on_start = [&](const TrainStart& known) { start = known; }}});
  EXPECT_EQ(dry.start.data.train, 60);
  EXPECT_EQ(dry.start.data.valid, 1);
  EXPECT_GT(dry.start.data.tokens, 60 * 4);
  EXPECT_EQ(dry.start.first_step, 0);
  EXPECT_GE(dry.start.steps, 3 * dry.start.data.tokens / 100);
  EXPECT_EQ(start.parameters, dry.start.parameters);
  EXPECT_GE(dry.start.parameters, dry.start.data.vocabulary * 32);
  // Fresh weights know nothing: the loss is near that of guessing, give or take what the first logits scatter.
  EXPECT_NEAR(dry.loss, std::log(static_cast<double>(dry.start.data.vocabulary)), 2);
  EXPECT_EQ(folder_.files(), 2U);
}

TEST_F(DryRuns, CountsStepsOfSeveralBatches) {
  const int64_t batches = dry_run({.config = config_}).start.steps;
  config_.train.accumulate = 2;
  EXPECT_EQ(dry_run({.config = config_}).start.steps, batches / 2);
  config_.train.steps = 7;
  EXPECT_EQ(dry_run({.config = config_}).start.steps, 7);
}

TEST_F(DryRuns, RefusesWhatARunRefuses) {
  config_.train.accumulate = 1000;
  EXPECT_EQ(refusal_of([&] { dry_run({.config = config_}); }).sentence,
            "train: the data make no whole step; expected more of them, or train.accumulate below 1000");
  config_.train.accumulate = 1;
  std::filesystem::create_directories(folder_ / "out/checkpoints");
  write_checkpoint(folder_ / "out/checkpoints/step-00000001.safetensors", {.step = 1, .tensors = {}, .state = ""});
  EXPECT_TRUE(refusal_of([&] { dry_run({.config = config_}); }).says("holds a run already"));
  config_.train.output = folder_ / "train.tsv";
  EXPECT_TRUE(refusal_of([&] { dry_run({.config = config_}); }).says("is a file; expected a folder"));
  config_.train.output = "";
  EXPECT_TRUE(refusal_of([&] { dry_run({.config = config_}); }).says("train.output is not given"));
}

}  // namespace
}  // namespace mh
