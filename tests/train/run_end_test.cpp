// Runs that cannot go well: they diverge, do not fit into memory, or want a folder that another run has.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <new>

#include "multihead/base/out_of_memory.h"
#include "multihead/io/checkpoint.h"
#include "multihead/io/safetensors.h"
#include "multihead/models/model_file.h"
#include "multihead/train/dry_run.h"
#include "multihead/train/trainer.h"
#include "tests/harness/refusal.h"
#include "tests/train/small_run.h"

namespace mh {
namespace {

namespace fs = std::filesystem;

class RunEnds : public SmallRun {
 protected:
  // Every step multiplies the weights by about -100 until products overflow; the gradients are NaN from then on.
  TrainConfig diverging(const std::string& output) const {
    TrainConfig c = config(output, 1000);
    c.optimizer.learning_rate = 10;
    c.optimizer.weight_decay = 10;
    c.optimizer.warmup = 0;
    c.optimizer.schedule = ScheduleKind::constant;
    c.train.ema = 0;
    c.train.give_up_after = 4;
    c.train.save_every = 1;
    c.train.keep = 1;
    c.train.validate_every = 0;
    return c;
  }
};

TEST_F(RunEnds, ADivergedRunStopsSaysSoAndKeepsTheLastGoodCheckpoint) {
  TrainRequest request{.config = diverging("run")};
  std::vector<double> norms;
  std::vector<std::string> said;
  request.events.on_step = [&](const TrainStep& step) { norms.push_back(step.grad_norm); };
  request.events.on_message = [&](const std::string& text) { said.push_back(text); };
  const Refusal refusal = refusal_of([&] { train(request); });
  ASSERT_GT(norms.size(), 4u) << refusal.sentence;
  ASSERT_LT(norms.size(), 200u);
  for (size_t n = 0; n < 4; ++n) EXPECT_FALSE(std::isfinite(norms[norms.size() - 1 - n]));
  const auto good = static_cast<int64_t>(norms.size()) - 4;
  EXPECT_TRUE(std::isfinite(norms[static_cast<size_t>(good) - 1]));
  const std::vector<std::string> kept = list_checkpoints(request.config.train.output + "/checkpoints");
  ASSERT_FALSE(kept.empty());
  EXPECT_EQ(read_checkpoint(kept.front()).step, good);
  EXPECT_EQ(refusal.kind, ErrorKind::invalid_argument);
  EXPECT_EQ(
      refusal.sentence,
      fmt::format("train: the run diverged: the gradients of the last 4 steps, up to step {}, are not finite; try "
                  "a lower optimizer.learning_rate (it is 10), a longer optimizer.warmup (it is 0) or "
                  "optimizer.clip = 1; the last good checkpoint is {}",
                  norms.size(), kept.front()));
  EXPECT_THAT(said, testing::Contains(
                        fmt::format("train: step {} had gradients that are not finite and was skipped", norms.size())));
  EXPECT_TRUE(fs::exists(request.config.train.output + "/model.safetensors"));
}

TEST_F(RunEnds, GoesOnWhereItIsToldNeverToGiveUp) {
  TrainConfig c = diverging("run");
  c.train.give_up_after = 0;
  c.train.steps = 60;
  EXPECT_EQ(train({.config = c}).steps, 60);
}

TEST_F(RunEnds, AModelThatIsNotFiniteIsNotShipped) {
  train({.config = config("first", 2)});
  Safetensors file = read_safetensors(folder_ / "first/model.safetensors");
  for (auto& [name, tensor] : file.tensors) {
    tensor = tensor.clone();
    tensor.data<float>()[0] = NAN;
  }
  write_safetensors(folder_ / "first/model.safetensors",
                    {.tensors = file.tensors, .metadata = {{"config", file.metadata.at("config")}, {"format", "pt"}}});
  TrainConfig c = config("second", 40);
  c.start.from = folder_ / "first";
  c.train.validate_every = 1;
  std::vector<std::string> said;
  TrainRequest request{.config = c};
  request.events.on_message = [&](const std::string& text) { said.push_back(text); };
  request.events.on_validation = [&](const TrainValidation& v) {
    EXPECT_TRUE(std::isnan(v.loss));
    EXPECT_FALSE(v.best);
  };
  EXPECT_TRUE(refusal_of([&] { train(request); }).says("up to step 20, are not finite"));
  EXPECT_THAT(said, testing::Contains("train: no model was written: some of its weights are not finite"));
  EXPECT_FALSE(fs::exists(folder_ / "second/model.safetensors"));
  EXPECT_TRUE(list_checkpoints(folder_ / "second/checkpoints").empty());
}

TEST_F(RunEnds, AModelThatDoesNotFitIsRefusedBeforeAnythingElse) {
  TrainConfig c = config("run");
  c.model.width = 65536;
  c.model.feed_forward = 1000000;
  c.model.encoder_layers = c.model.decoder_layers = 1024;
  c.data.train = folder_ / "not-there.tsv";
  const Refusal refusal = refusal_of([&] { train({.config = c}); });
  EXPECT_TRUE(refusal.says("training it takes at least ")) << refusal.sentence;
  EXPECT_TRUE(refusal.says("the memory that is free")) << refusal.sentence;
  EXPECT_EQ(refusal_of([&] { dry_run({.config = c}); }).sentence.substr(0, 60), refusal.sentence.substr(0, 60));
  EXPECT_FALSE(fs::exists(c.train.output));
}

TEST_F(RunEnds, TheVocabularyCountsOnceItIsKnown) {
  TrainConfig c = config("run");
  // 260 tokens would fit into any machine; the 300 of this tokenizer, at this width, make the largest model of all.
  c.model.vocabulary = 10000000;
  c.model.width = 65536;
  EXPECT_TRUE(refusal_of([&] { train({.config = c}); }).says("training it takes at least "));
}

TEST_F(RunEnds, NoMemoryIsASentence) {
  TrainRequest request{.config = config("run")};
  request.events.on_start = [](const TrainStart&) { throw std::bad_alloc(); };
  const std::string sentence =
      "train: there is not enough memory; try a smaller data.tokens_per_batch (it is 256), model.width (it is 16) or "
      "data.max_length (it is 32)";
  EXPECT_EQ(refusal_of([&] { train(request); }).sentence, sentence);
  request.config.train.output = folder_ / "other";
  request.events.on_start = [](const TrainStart&) { throw OutOfMemory("multihead", 1); };
  EXPECT_EQ(refusal_of([&] { dry_run(request); }).sentence, sentence);
}

TEST_F(RunEnds, ASecondRunOnTheFolderIsRefused) {
  TrainRequest request{.config = config("run", 6)};
  std::vector<std::string> refused;
  request.events.on_step = [&](const TrainStep& step) {
    if (step.step != 2) return;
    for (const bool resume : {false, true})
      refused.push_back(refusal_of([&] { train({.config = config("run", 6), .resume = resume}); }).sentence);
  };
  EXPECT_EQ(train(request).steps, 6);
  const std::string sentence = fmt::format(
      "'{}' is in use by process {}; expected a folder that no other run writes to", folder_ / "run", getpid());
  EXPECT_THAT(refused, testing::ElementsAre(sentence, sentence));
  EXPECT_EQ(train({.config = config("run", 6), .resume = true}).steps, 6);
}

}  // namespace
}  // namespace mh
