// Whole runs: what they leave, how they go on, and that a run killed anywhere ends with the bits of one that was not.
#include "multihead/train/trainer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "multihead/base/random.h"
#include "multihead/io/checkpoint.h"
#include "multihead/io/safetensors.h"
#include "tests/harness/child.h"
#include "tests/harness/refusal.h"
#include "tests/train/small_run.h"

namespace mh {
namespace {

namespace fs = std::filesystem;

class TrainerTest : public SmallRun {};

void expect_same_end(const std::string& a, const std::string& b) {
  const auto x = load_newest_checkpoint(a + "/checkpoints"), y = load_newest_checkpoint(b + "/checkpoints");
  ASSERT_TRUE(x && y);
  EXPECT_EQ(x->step, y->step);
  ASSERT_EQ(x->tensors.size(), y->tensors.size());
  for (const auto& [name, tensor] : x->tensors) {
    const Tensor other = y->tensors.at(name);
    for (int64_t i = 0; i < tensor.count(); ++i) ASSERT_EQ(tensor.data<float>()[i], other.data<float>()[i]) << name;
  }
  EXPECT_EQ(text_of(a + "/model.safetensors"), text_of(b + "/model.safetensors"));
}

TEST_F(TrainerTest, LeavesAModelFolder) {
  int steps = 0, validations = 0;
  std::string saved;
  TrainRequest request{.config = config("run")};
  request.events.on_step = [&](const TrainStep& step) {
    EXPECT_EQ(step.step, ++steps);
    EXPECT_GT(step.tokens_per_second, 0);
    EXPECT_EQ(step.seconds_left == 0, step.step == 12);
  };
  request.events.on_validation = [&](const TrainValidation& v) {
    ++validations;
    EXPECT_GT(v.value("perplexity"), 1);
    EXPECT_GE(v.value("bleu"), 0);
  };
  request.events.on_checkpoint = [&](const std::string& path) { saved = path; };
  const TrainOutcome outcome = train(request);
  EXPECT_EQ(outcome.steps, 12);
  EXPECT_FALSE(outcome.stopped);
  EXPECT_EQ(steps, 12);
  EXPECT_EQ(validations, 3);
  EXPECT_TRUE(fs::exists(saved));
  for (const char* name : {"config.toml", "tokenizer.json", "model.safetensors", "metrics.jsonl", "checkpoints"})
    EXPECT_TRUE(fs::exists(fs::path(outcome.folder) / name)) << name;
  EXPECT_GE(list_checkpoints(outcome.folder + "/checkpoints").size(), 2u);
}

TEST_F(TrainerTest, AFolderWithARunIsRefusedUnlessResumed) {
  train({.config = config("run", 3)});
  EXPECT_THROW(train({.config = config("run", 3)}), Error);
  EXPECT_EQ(train({.config = config("run", 3), .resume = true}).steps, 3);
}

TEST_F(TrainerTest, StoppedAndResumedItEndsAsIfNothingHadBeen) {
  train({.config = config("whole")});
  for (const int64_t stop : {1, 4, 5, 11}) {
    const std::string name = "stopped-" + std::to_string(stop);
    int64_t at = 0;
    TrainRequest request{.config = config(name)};
    request.events.on_step = [&](const TrainStep& step) { at = step.step; };
    request.events.stop_requested = [&] { return at == stop; };
    const TrainOutcome first = train(request);
    EXPECT_TRUE(first.stopped);
    EXPECT_EQ(first.steps, stop);
    const TrainOutcome rest = train({.config = config(name), .resume = true});
    EXPECT_EQ(rest.steps, 12);
    expect_same_end(config("whole").train.output, rest.folder);
  }
}

TEST_F(TrainerTest, ARunThatGoesOnWithOtherPairsSaysSo) {
  train({.config = config("run", 3)});
  std::vector<std::string> said;
  TrainRequest request{.config = config("run", 3), .resume = true};
  request.events.on_message = [&](const std::string& text) { said.push_back(text); };
  train(request);
  EXPECT_THAT(said, testing::Each(testing::Not(testing::HasSubstr("does not hold the data"))));

  // The same lines in another order: as many pairs and tokens as before.
  const std::string text = text_of(folder_ / "train.tsv");
  const size_t first = text.find('\n') + 1;
  std::ofstream(folder_ / "train.tsv") << text.substr(first) << text.substr(0, first);
  train(request);
  EXPECT_THAT(said, testing::Contains(testing::HasSubstr("train.tsv does not hold the data that the run began with")));
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST_F(TrainerTest, KilledAnywhereItEndsAsIfNothingHadBeen) {
  train({.config = config("whole")});
  Random random(3);
  int runs = 0;
  for (bool done = false; !done && runs < 200; ++runs) {
    const pid_t child = fork_child();
    ASSERT_GE(child, 0);
    if (child == 0) {
      try {
        train({.config = config("killed"), .resume = true});
        _exit(0);
      } catch (const std::exception& error) {
        fprintf(stderr, "%s\n", error.what());
        _exit(1);
      }
    }
    usleep(static_cast<useconds_t>(2000 + random.below(60000)));
    kill(child, SIGKILL);
    int status = 0;
    waitpid(child, &status, 0);
    ASSERT_FALSE(WIFEXITED(status) && WEXITSTATUS(status) != 0);
    done = WIFEXITED(status);
    if (runs == 60) usleep(500000);
  }
  train({.config = config("killed"), .resume = true});
  expect_same_end(config("whole").train.output, config("killed").train.output);
}
#endif

TEST_F(TrainerTest, AnAlteredCheckpointGivesWayToTheOneBefore) {
  train({.config = config("whole")});
  train({.config = config("run")});
  const std::string newest = list_checkpoints(config("run").train.output + "/checkpoints").front();
  {
    std::fstream file(newest, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(5000);
    file.put('x');
  }
  std::vector<std::string> said;
  TrainRequest request{.config = config("run"), .resume = true};
  request.events.on_message = [&](const std::string& text) { said.push_back(text); };
  EXPECT_EQ(train(request).steps, 12);
  EXPECT_FALSE(said.empty());
  expect_same_end(config("whole").train.output, config("run").train.output);
}

TEST_F(TrainerTest, PatienceEndsTheRun) {
  TrainConfig c = config("run", 400);
  c.train.validate_every = 1;
  c.train.patience = 2;
  c.optimizer.learning_rate = 1.0;  // soon worse than before
  c.train.ema = 0;
  EXPECT_LT(train({.config = c}).steps, 400);
}

TEST_F(TrainerTest, AFolderThatCannotBeWrittenIsSaidBeforeTheWork) {
  TrainConfig c = config("run");
  c.train.output = folder_ / "train.tsv/inside";
  TrainRequest request{.config = c};
  int64_t work = 0;
  request.events.on_wait = [&](const std::string&, int64_t, int64_t) { ++work; };
  EXPECT_EQ(refusal_of([&] { train(request); }).sentence,
            "cannot write to '" + c.train.output + "': '" + (folder_ / "train.tsv") + "' is a file; expected a folder");
  EXPECT_EQ(work, 0);
}

TEST_F(TrainerTest, ARunDoesNotGoOnWithAnotherModel) {
  train({.config = config("run", 3)});
  const std::string before = text_of(config("run").train.output + "/config.toml");
  TrainConfig other = config("run", 6);
  other.model.width = 32;
  EXPECT_EQ(
      refusal_of([&] { train({.config = other, .resume = true}); }).sentence,
      "train: the run cannot go on with another model (model.width was 16 and is 32, train.steps was 3 and is 6); "
      "expected the one it began with, or another train.output");
  EXPECT_EQ(text_of(config("run").train.output + "/config.toml"), before);
}

}  // namespace
}  // namespace mh
