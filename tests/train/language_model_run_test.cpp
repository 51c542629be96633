// Whole runs of a language model: near the entropy of a known source, and the same bits when stopped and resumed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "multihead/base/random.h"
#include "multihead/io/checkpoint.h"
#include "multihead/tasks/language_model.h"
#include "multihead/train/dry_run.h"
#include "multihead/train/trainer.h"
#include "tests/harness/refusal.h"
#include "tests/harness/temporary_folder.h"

namespace mh {
namespace {

constexpr double kStays = 0.85;  // a letter is that before it; else the other one
constexpr int kLetters = 12;

class LanguageModelRuns : public testing::Test {
 protected:
  LanguageModelRuns() {
    write("train.txt", 1, 600);
    nats_ = write("valid.txt", 2, 100);
  }

  // Lines of the letters a and b; returns -log p of all of them by the source itself.
  double write(const std::string& name, uint64_t seed, int lines) const {
    Random random(seed);
    std::string text;
    double nats = 0;
    for (int n = 0; n < lines; ++n) {
      bool b = random.below(2) == 1;
      nats += std::log(2);
      text += b ? 'b' : 'a';
      for (int i = 1; i < kLetters; ++i) {
        const bool stays = random.uniform() < kStays;
        nats -= std::log(stays ? kStays : 1 - kStays);
        b = stays ? b : !b;
        text += b ? 'b' : 'a';
      }
      text += '\n';
    }
    put_text(folder_ / name, text);
    return nats;
  }

  TrainConfig config(const std::string& output, int64_t steps) const {
    TrainConfig c;
    c.task = {.kind = TaskKind::language_model, .packed = false, .samples = 2};
    c.model = {.vocabulary = 0,
               .width = 32,
               .heads = 2,
               .feed_forward = 48,
               .encoder_layers = 0,
               .decoder_layers = 1,
               .dropout = 0,
               .max_length = 16};
    c.tokenizer.vocabulary = 260;  // a token a byte
    c.data.train = folder_ / "train.txt";
    c.data.valid = folder_ / "valid.txt";
    c.data.tokens_per_batch = 512;
    c.data.max_length = 16;
    c.optimizer.warmup = 10;
    c.optimizer.learning_rate = 5e-3;
    c.train.label_smoothing = 0;
    c.train.output = folder_ / output;
    c.train.steps = steps;
    c.train.save_every = 3;
    c.train.validate_every = steps;
    return c;
  }

  TemporaryFolder folder_;
  double nats_ = 0;  // of valid.txt
};

TEST_F(LanguageModelRuns, LearnTheEntropyOfAKnownSource) {
  std::vector<TrainValidation> validations;
  TrainRequest request{.config = config("run", 250)};
  request.events.on_validation = [&](const TrainValidation& v) { validations.push_back(v); };
  const TrainOutcome outcome = train(request);
  ASSERT_EQ(validations.size(), 1U);
  LanguageModelFolder m = load_language_model(outcome.folder);
  const TextScores scores = score_text(m, folder_ / "valid.txt", {.packed = false, .tokens_per_batch = 512});
  // No model predicts a source better than the source itself, but for luck with 100 lines.
  EXPECT_LT(scores.nats, 1.05 * nats_);
  EXPECT_GT(scores.nats, 0.97 * nats_);
  EXPECT_EQ(scores.words, 100);
  EXPECT_EQ(scores.bytes, 100 * (kLetters + 1));
  EXPECT_EQ(validations[0].metrics, scores.metrics());
  EXPECT_EQ(validations[0].samples.size(), 2U);
  for (const std::string& sample : validations[0].samples) EXPECT_THAT(sample, testing::MatchesRegex(" ?[ab]{10,12}"));
}

TEST_F(LanguageModelRuns, StoppedAndResumedTheyEndAsIfNeverInterrupted) {
  for (const DType precision : {DType::f32, DType::bf16}) {
    const std::string kind(name(precision));
    const auto run = [&](const std::string& output) {
      TrainConfig c = config(kind + output, 10);
      c.task.packed = true;
      c.model.dropout = 0.1F;
      c.train.ema = 0.9;
      c.train.validate_every = 4;
      c.train.precision = precision;
      return c;
    };
    train({.config = run("whole")});
    for (const int64_t stop : {1, 4, 8}) {
      const TrainConfig c = run(fmt::format("stopped-{}", stop));
      int64_t at = 0;
      TrainRequest request{.config = c};
      request.events.on_step = [&](const TrainStep& step) { at = step.step; };
      request.events.stop_requested = [&] { return at == stop; };
      EXPECT_TRUE(train(request).stopped);
      EXPECT_EQ(train({.config = c, .resume = true}).steps, 10);
      const auto x = load_newest_checkpoint(run("whole").train.output + "/checkpoints"),
                 y = load_newest_checkpoint(c.train.output + "/checkpoints");
      ASSERT_TRUE(x && y);
      ASSERT_EQ(x->tensors.size(), y->tensors.size());
      for (const auto& [key, tensor] : x->tensors)
        for (int64_t i = 0; i < tensor.count(); ++i)
          ASSERT_EQ(tensor.data<float>()[i], y->tensors.at(key).data<float>()[i]) << key;
      EXPECT_EQ(text_of(run("whole").train.output + "/model.safetensors"),
                text_of(c.train.output + "/model.safetensors"));
    }
  }
}

TEST_F(LanguageModelRuns, StartFromGivenWeights) {
  train({.config = config("first", 60)});
  TrainConfig c = config("second", 1);
  const double fresh = dry_run({.config = c}).loss;
  c.start.from = folder_ / "first";
  EXPECT_LT(dry_run({.config = c}).loss, 0.5 * fresh);
  c.model.width = 64;
  EXPECT_TRUE(refusal_of([&] { dry_run({.config = c}); }).says("model.width is 64, there it is 32"));
  c.task.kind = TaskKind::translation;
  EXPECT_TRUE(
      refusal_of([&] { dry_run({.config = c}); }).says("kind 'language_model'; expected transformer, which task.kind"));
}

TEST_F(LanguageModelRuns, RefuseASecondText) {
  TrainConfig c = config("run", 1);
  c.data.train_target = folder_ / "valid.txt";
  EXPECT_EQ(refusal_of([&] { train({.config = c}); }).sentence,
            "config: data.train_target is given, and a language model reads one text; expected none");
}

}  // namespace
}  // namespace mh
