// Classifiers of pictures from data to folder: a run learns what can be seen, and resumes bit for bit.
#include <gtest/gtest.h>

#include "multihead/tasks/verbs/image_classifier.h"
#include "multihead/train/trainer.h"
#include "tests/harness/refusal.h"
#include "tests/tasks/pixels/pictures.h"
#include "tests/train/observed_run.h"

namespace mh {
namespace {

class ImageClassRuns : public testing::Test {
 protected:
  ImageClassRuns() {
    write_pictures(folder_ / "train", 30);
    write_pictures(folder_ / "valid", 10, 100);
  }
  TrainConfig config(const std::string& output, int64_t steps) const {
    TrainConfig c;
    c.task.kind = TaskKind::image_class;
    c.model = {
        .vocabulary = 0, .width = 16, .heads = 2, .feed_forward = 24, .encoder_layers = 2, .middle = Middle::gelu};
    c.data.train = folder_ / "train";
    c.data.valid = folder_ / "valid";
    c.data.examples_per_batch = 8;
    c.data.flip = true;
    c.data.shift = 1;
    c.data.colour_noise = 0.1;
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

TEST_F(ImageClassRuns, LearnWhatCanBeSeen) {
  const Seen seen = observe(config("model", 150));
  EXPECT_EQ(seen.refusal, "no refusal");
  EXPECT_EQ(seen.outcome.watched, "accuracy");
  EXPECT_GT(seen.outcome.best_validation, 0.95);
  EXPECT_LT(seen.validations.back().loss, 0.4);
  EXPECT_EQ(ImageClassifier::load(seen.outcome.folder)(half_bright(true, 999)).label, "upper");
}

TEST_F(ImageClassRuns, ResumeBitForBit) {
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

TEST_F(ImageClassRuns, StartFromAModelWithOtherLabels) {
  const Seen first = observe(config("first", 40));
  const double fresh = observe(config("fresh", 1)).validations.at(0).loss;
  TrainConfig again = config("again", 1);
  again.start.from = first.config.train.output;
  EXPECT_LT(observe(again).validations.at(0).loss, 0.7 * fresh);
  std::filesystem::rename(folder_ / "train/lower", folder_ / "train/down");
  TrainConfig other = config("other", 1);
  other.data.valid.clear();
  other.start.from = first.config.train.output;
  EXPECT_EQ(observe(other).refusal, "no refusal");
  EXPECT_EQ(ImageClassifier::load(folder_ / "other").labels(), (std::vector<std::string>{"down", "upper"}));
}

TEST_F(ImageClassRuns, RefuseSettingsThatAreNotTheirs) {
  TrainConfig c = config("x", 1);
  c.data.train_target = "labels";
  EXPECT_EQ(
      refusal_of([&] { train({.config = c}); }).sentence,
      "config: data.train_target names labels, and data.valid_target none; expected both, for IDX files, or neither");
  c = config("x", 1);
  c.recurrent.kind = ModelKind::bert;
  EXPECT_TRUE(refusal_of([&] { train({.config = c}); }).says("model.kind is \"bert\"; expected \"transformer\""));
  c = config("x", 1);
  c.start.from = folder_ / "train";
  EXPECT_NE(refusal_of([&] { train({.config = c}); }).sentence, "no refusal");
  c = config("x", 1);
  c.model.middle = Middle::swiglu;
  EXPECT_TRUE(refusal_of([&] { train({.config = c}); }).says("model.activation is gated, and the model is a ViT"));
}

}  // namespace
}  // namespace mh
