// Classifiers of recordings from data to folder: a run learns what can be heard, and resumes bit for bit.
#include <gtest/gtest.h>

#include "multihead/tasks/verbs/sound_classifier.h"
#include "multihead/train/trainer.h"
#include "tests/tasks/pixels/tones.h"
#include "tests/train/observed_run.h"

namespace mh {
namespace {

class SpeechClassRuns : public testing::Test {
 protected:
  SpeechClassRuns() {
    write_tones(folder_ / "train", 12);
    write_tones(folder_ / "valid", 5, 100);
  }
  TrainConfig config(const std::string& output, int64_t steps) const {
    TrainConfig c;
    c.task.kind = TaskKind::speech_class;
    c.model = {
        .vocabulary = 0, .width = 16, .heads = 2, .feed_forward = 24, .encoder_layers = 1, .middle = Middle::gelu};
    c.data.train = folder_ / "train";
    c.data.valid = folder_ / "valid";
    c.data.examples_per_batch = 8;
    c.data.frames = 16;
    c.data.shift = 1;
    c.data.time_mask = 3;
    c.data.mel_mask = 3;
    c.optimizer.learning_rate = 5e-3;
    c.optimizer.warmup = 5;
    c.train.output = folder_ / output;
    c.train.steps = steps;
    c.train.save_every = 5;
    c.train.threads = 1;
    return c;
  }
  TemporaryFolder folder_;
};

TEST_F(SpeechClassRuns, LearnWhatCanBeHeard) {
  const Seen seen = observe(config("model", 40));
  EXPECT_EQ(seen.refusal, "no refusal");
  EXPECT_GT(seen.outcome.best_validation, 0.95);
  EXPECT_EQ(SoundClassifier::load(seen.outcome.folder)(tone(true, 999)).label, "high");
}

TEST_F(SpeechClassRuns, ResumeBitForBit) {
  observe(config("whole", 12));
  TrainConfig c = config("parts", 12);
  TrainRequest request{.config = c};
  int64_t steps = 0;
  request.events.on_step = [&](const TrainStep&) { ++steps; };
  request.events.stop_requested = [&] { return steps == 7; };
  EXPECT_TRUE(train(request).stopped);
  EXPECT_FALSE(train({.config = c, .resume = true}).stopped);
  EXPECT_EQ(text_of(folder_ / "whole/model.safetensors"), text_of(folder_ / "parts/model.safetensors"));
}

}  // namespace
}  // namespace mh
