// Classifiers from data to folder: a run learns what can be learned, stops on accuracy, and resumes bit for bit.
#include <gtest/gtest.h>

#include "multihead/base/random.h"
#include "multihead/io/checkpoint.h"
#include "multihead/tasks/verbs/classifier.h"
#include "multihead/train/trainer.h"
#include "tests/harness/refusal.h"
#include "tests/train/observed_run.h"

namespace mh {
namespace {

class ClassifyRuns : public testing::Test {
 protected:
  ClassifyRuns() {
    write("train.tsv", 1, 300);
    write("valid.tsv", 2, 60);
  }
  // The label is the word that comes last but one: positions count.
  void write(const std::string& name, uint64_t seed, int rows) const {
    Random random(seed);
    const char* words[] = {"red", "green", "blue"};
    std::string text;
    for (int n = 0; n < rows; ++n) {
      const int64_t label = random.below(3);
      for (int64_t i = random.below(4); i > 0; --i) text += std::string(words[random.below(3)]) + " ";
      text += std::string(words[label]) + " end\t" + words[label] + "\n";
    }
    put_text(folder_ / name, text);
  }
  TrainConfig config(const std::string& output, int64_t steps) const {
    TrainConfig c;
    c.task.kind = TaskKind::classify;
    c.model = {.vocabulary = 0,
               .width = 32,
               .heads = 4,
               .feed_forward = 64,
               .encoder_layers = 2,
               .positions = ModelPositions::learned,
               .max_length = 8};
    c.tokenizer.kind = TokenizerKind::words;
    c.data.train = folder_ / "train.tsv";
    c.data.valid = folder_ / "valid.tsv";
    c.data.max_length = 8;
    c.data.examples_per_batch = 16;
    c.optimizer.learning_rate = 5e-3;
    c.optimizer.warmup = 10;
    c.train.output = folder_ / output;
    c.train.steps = steps;
    c.train.save_every = 5;
    c.train.threads = 1;
    return c;
  }
  TemporaryFolder folder_;
};

TEST_F(ClassifyRuns, LearnTheRule) {
  for (const Pooling pooling : {Pooling::mean, Pooling::first}) {
    TrainConfig c = config(pooling == Pooling::mean ? "mean" : "first", 150);
    c.head.pooling = pooling;
    const Seen seen = observe(c);
    EXPECT_EQ(seen.refusal, "no refusal");
    EXPECT_EQ(seen.outcome.watched, "accuracy");
    EXPECT_GT(seen.outcome.best_validation, 0.95);
    EXPECT_LT(seen.validations.back().loss, 0.5);
    EXPECT_EQ(Classifier::load(seen.outcome.folder)("blue green red end").label, "red");
  }
}

// The labels are the words that occur, the number how often "red" does.
TEST_F(ClassifyRuns, LearnSeveralLabelsAndNumbers) {
  Random random(7);
  const char* words[] = {"red", "green", "blue", "end"};
  std::string sets, numbers;
  for (int n = 0; n < 300; ++n) {
    std::string text = "end", labels = ",";
    bool has[3] = {};
    int reds = 0;
    for (int i = 0; i < 4; ++i) {
      const int64_t word = random.below(4);
      text += std::string(" ") + words[word];
      reds += word == 0;
      if (word < 3) has[word] = true;
    }
    for (int word = 0; word < 3; ++word) labels += has[word] ? std::string(words[word]) + "," : "";
    sets += text + "\t" + labels + "\n";
    numbers += fmt::format("{}\t{}\n", text, reds);
  }
  put_text(folder_ / "sets.tsv", sets);
  put_text(folder_ / "numbers.tsv", numbers);
  for (const LabelKind kind : {LabelKind::several, LabelKind::number}) {
    const bool several = kind == LabelKind::several;
    TrainConfig c = config(several ? "sets" : "numbers", 150);
    c.task.labels = kind;
    c.data.train = c.data.valid = folder_ / (several ? "sets.tsv" : "numbers.tsv");
    const Seen seen = observe(c);
    EXPECT_EQ(seen.refusal, "no refusal");
    EXPECT_EQ(seen.outcome.watched, several ? "micro_f1" : "pearson");
    EXPECT_GT(seen.outcome.best_validation, 0.95);
    const Classification said = Classifier::load(seen.outcome.folder)("end red green red end");
    if (several) {
      EXPECT_LT(said.scores[0], 0.5);  // blue, green, red
      EXPECT_GT(said.scores[1], 0.5);
      EXPECT_GT(said.scores[2], 0.5);
    } else {
      EXPECT_NEAR(said.score, 2, 0.7);
    }
  }
}

TEST_F(ClassifyRuns, ResumeBitForBit) {
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

TEST_F(ClassifyRuns, HoldOutAndStartFromAModel) {
  TrainConfig first = config("first", 60);
  first.data.valid.clear();
  first.data.hold_out = 50;
  const Seen seen = observe(first);
  EXPECT_GE(seen.start.data.valid, 50);
  EXPECT_EQ(seen.start.data.train + seen.start.data.valid, 300);
  TrainConfig second = config("second", 1);
  const double fresh = observe(second).validations.at(0).loss;
  second.start.from = first.train.output;
  second.train.output = folder_ / "third";
  EXPECT_LT(observe(second).validations.at(0).loss, 0.7 * fresh);
}

TEST_F(ClassifyRuns, RefuseSettingsThatAreNotTheirs) {
  TrainConfig c = config("x", 1);
  c.data.label = "1";
  EXPECT_EQ(refusal_of([&] { train({.config = c}); }).sentence,
            "config: data.text is column 1, data.label 1; expected different columns");
  c = config("x", 1);
  c.task.metric = "bleu";
  EXPECT_TRUE(refusal_of([&] { train({.config = c}); }).says("task.metric is \"bleu\""));
  c = config("x", 1);
  c.data.train_target = "y";
  EXPECT_TRUE(refusal_of([&] { train({.config = c}); }).says("data.train_target is given"));
}

}  // namespace
}  // namespace mh
