// `multihead train`: what it prints, what it refuses, and that a run stopped by a signal goes on.
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <thread>
#include <utility>

#include "multihead/base/random.h"
#include "multihead/io/checkpoint.h"
#include "multihead/io/safetensors.h"
#include "multihead/train/config/config.h"
#include "tests/cli/run_program.h"
#include "tests/harness/child.h"
#include "tests/harness/temporary_folder.h"

namespace mh::cli {
namespace {

class Train : public Program {
 protected:
  Train() {
    std::string text;
    for (int i = 0; i < 120; ++i) text += fmt::format("the house number {}\tdas Haus Nummer {}\n", i, i);
    put_text(folder_ / "train.tsv", text);
    put_text(folder_ / "valid.tsv", "the house\tdas Haus\nnumber 7\tNummer 7\n");
    put_text(config(),
             fmt::format("[model]\nwidth = 16\nheads = 2\nfeed_forward = 24\nencoder_layers = 1\n"
                         "decoder_layers = 1\n[tokenizer]\nvocabulary = 300\n"
                         "[data]\ntrain = \"{0}/train.tsv\"\nvalid = \"{0}/valid.tsv\"\ntokens_per_batch = 100\n"
                         "[train]\noutput = \"{0}/out\"\nsteps = 6\n",
                         folder_.path()));
  }
  std::string config() const { return folder_ / "a.toml"; }
  Ran train(const std::string& flags = "", const std::string& before = "") const {
    return run("train " + in_quotes(config()) + " " + flags, true, before);
  }
  bool has(const std::string& name) const { return std::filesystem::exists(folder_ / name); }

  TemporaryFolder folder_;
};

void expect_parts(const Ran& ran, const std::vector<std::string>& parts) {
  for (const std::string& part : parts) EXPECT_NE(ran.out.find(part), std::string::npos) << part << "\n" << ran.out;
}

TEST_F(Train, LeavesAModelFolder) {
  const Ran ran = train();
  EXPECT_EQ(ran.code, 0) << ran.out;
  expect_parts(ran, {"machine ", " parameters: width 16", "120 pairs", "validation  2 pairs", "1 of 6 steps: loss ",
                     "6 of 6 steps", "step 6: validation loss", "saved ", "trained 6 steps, best validation loss",
                     "; to use it: multihead translate " + (folder_ / "out")});
  for (const char* name : {"model.safetensors", "tokenizer.json", "config.toml", "metrics.jsonl", "checkpoints"})
    EXPECT_TRUE(has(std::string("out/") + name)) << name;
  EXPECT_EQ(ran.out.find('\r'), std::string::npos);  // no bar: this is no terminal
}

TEST_F(Train, SavesTheConfigurationItUsed) {
  EXPECT_EQ(train("--set train.seed=9 --threads 1", "MULTIHEAD_MODEL_DROPOUT=0.25").code, 0);
  const TrainConfig saved = parse_config(text_of(folder_ / "out/config.toml"), "config.toml");
  EXPECT_EQ(saved.train.seed, 9);
  EXPECT_EQ(saved.train.threads, 1);
  EXPECT_EQ(saved.model.dropout, 0.25F);
  EXPECT_EQ(saved.model.width, 16);
  EXPECT_GT(saved.model.vocabulary, 260);
}

TEST_F(Train, QuietSaysNothing) {
  const Ran ran = train("--quiet");
  EXPECT_EQ(ran.code, 0);
  EXPECT_EQ(ran.out, "");
}

TEST_F(Train, ProgressThatNobodyCanReadIsDropped) {
  for (const char* stream : {"2>/dev/full", "2>&-", ">&- 2>&-"}) {
    const std::string out = folder_ / "unread";
    const Ran ran = run("train " + in_quotes(config()) + " --set train.output=" + in_quotes(out) + " " + stream);
    EXPECT_EQ(ran.code, stream[0] == '>' ? 1 : 0) << stream;  // the last line is lost with stdout
    EXPECT_NO_THROW(read_safetensors(out + "/model.safetensors")) << stream;
    EXPECT_FALSE(list_checkpoints(out + "/checkpoints").empty()) << stream;
    std::filesystem::remove_all(out);
  }
}

TEST_F(Train, CheckWritesNothing) {
  const Ran ran = train("--check");
  EXPECT_EQ(ran.code, 0) << ran.out;
  expect_parts(ran, {"steps       6", "first step  loss ", "check: all is well; nothing was written"});
  EXPECT_EQ(folder_.files(), 3U);
}

TEST_F(Train, CheckFindsWhatARunWouldFind) {
  put_text(folder_ / "train.tsv", "no tab\n");
  const Ran ran = train("--check");
  EXPECT_EQ(ran.code, 1);
  expect_parts(ran, {"train.tsv:1: the line has 1 column; expected text in column 2"});
}

TEST_F(Train, SaysWhatWasLeftOut) {
  put_text(folder_ / "train.tsv",
           text_of(folder_ / "train.tsv") + "\none\tein\xFFs\n" + std::string(1 << 20, 'x') + "\n");
  const Ran ran = train("--check");
  EXPECT_EQ(ran.code, 0);
  expect_parts(ran, {"skipped 1 of 123 lines (line 121): an empty side", "(line 122): not UTF-8 at byte 8",
                     "(line 123): more than 65536 bytes"});
}

TEST_F(Train, ASuggestionTrainsAsItIs) {
  const std::string data = in_quotes(folder_ / "train.tsv"), file = folder_ / "my.toml";
  const Ran said = run("train --suggest " + data + " --set train.output=" + in_quotes(folder_ / "mine"));
  ASSERT_EQ(said.code, 0);
  put_text(file, said.out);
  const Ran ran = run("train " + in_quotes(file) + " --check", true);
  EXPECT_EQ(ran.code, 0) << ran.out;
  expect_parts(ran, {"6 pairs: held out of the training pairs", "check: all is well"});
  EXPECT_EQ(run("train --suggest " + in_quotes(folder_ / "none.tsv")).code, 1);
}

TEST_F(Train, KeysPrintsThePageOfTheDocs) {
  EXPECT_EQ(run("train --keys").out, text_of(std::string(MH_TEST_DATA) + "/../docs/configuration.md"));
}

TEST_F(Train, RefusesInOneSentence) {
  const auto refused = [&](const Ran& ran, int code, const std::string& sentence) {
    EXPECT_EQ(ran.code, code);
    EXPECT_EQ(ran.out, sentence + "\n");
    EXPECT_FALSE(has("out"));
  };
  refused(run("train", true), 2, "multihead train: CONFIG.toml is required; see 'multihead train --help'");
  refused(run("train a.toml --chekc", true), 2, "multihead train: there is no flag '--chekc'; did you mean '--check'?");
  refused(run("train '" + (folder_ / "none.toml") + "'", true), 1,
          "multihead: cannot read '" + (folder_ / "none.toml") + "': No such file or directory");
  refused(train("--set model.widht=1"), 1, "multihead: --set: there is no key model.widht; did you mean model.width?");
  refused(train("", "MULTIHEAD_MODEL_WIDTH=x"), 1,
          "multihead: MULTIHEAD_MODEL_WIDTH: model.width is \"x\"; expected an integer from 1 to 65536");
  refused(train("--set data.train=" + (folder_ / "none.tsv")), 1,
          "multihead: cannot read '" + (folder_ / "none.tsv") + "': No such file or directory");
  put_text(folder_ / "train.tsv", "");
  refused(train(), 1, "multihead: " + (folder_ / "train.tsv") + ": empty; expected sentence pairs");
  put_text(config(), "[model]\nwidth = 16\nwidht = 3\n");
  refused(train(), 1, "multihead: " + config() + ":3: there is no key model.widht; did you mean model.width?");
}

TEST_F(Train, DoesNotWriteOverARun) {
  EXPECT_EQ(train().code, 0);
  for (const char* flags : {"", "--check"}) {
    const Ran ran = train(flags);
    EXPECT_EQ(ran.code, 1);
    expect_parts(ran, {"out holds a run already; expected --resume to go on with it, or another train.output"});
  }
  EXPECT_EQ(train("--check --resume").code, 0);
}

// `multihead train` in a process of its own, until it is waited for.
class Running {
 public:
  // Its stdout and stderr go to `out`, where that is not -1.
  Running(const std::string& config, const std::vector<std::string>& flags, int out = -1) : child_(fork_child()) {
    if (child_ != 0) return;
    if (out != -1) {
      dup2(out, STDOUT_FILENO);
      dup2(out, STDERR_FILENO);
    }
    std::vector<std::string> words{MH_PROGRAM, "train", config};
    words.insert(words.end(), flags.begin(), flags.end());
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    execv(MH_PROGRAM, arguments.data());
    _exit(127);
  }
  ~Running() {
    if (child_ > 0) kill(child_, SIGKILL);
    if (child_ > 0) waitpid(child_, nullptr, 0);
  }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

  void signal(int number) const { kill(child_, number); }
  pid_t process() const { return child_; }
  // Its exit code; -1 where a signal ended it.
  int wait() {
    int status = 0;
    if (waitpid(std::exchange(child_, -1), &status, 0) < 0) return -2;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

 private:
  pid_t child_;
};

const std::vector<std::string> kEndless{
    "--quiet", "--set", "train.steps=100000000", "--set", "train.save_every=1", "--set", "optimizer.schedule=constant"};

void wait_for_a_checkpoint(const std::string& folder) {
  // Any of them: each is there for two steps only.
  for (int i = 0; i < 3000 && list_checkpoints(folder + "/checkpoints").empty(); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
}

TEST_F(Train, ASignalStopsItAndResumeGoesOn) {
  for (const int number : {SIGTERM, SIGHUP}) {
    std::filesystem::remove_all(folder_ / "out");
    Running running(config(), kEndless);
    wait_for_a_checkpoint(folder_ / "out");
    running.signal(number);
    EXPECT_EQ(running.wait(), 3);
    EXPECT_TRUE(has("out/model.safetensors"));
    // One step more than is done: the run is whole, and this is its end.
    const std::string saved = folder_ / "out/config.toml";
    const int64_t steps = read_checkpoint(list_checkpoints(folder_ / "out/checkpoints").front()).step + 1;
    const Ran ran = run(fmt::format("train {} --resume --set train.steps={}", in_quotes(saved), steps), true);
    EXPECT_EQ(ran.code, 0) << ran.out;
    expect_parts(ran, {fmt::format("train.steps was 100000000 and is {}", steps), "are done", "best validation loss"});
  }
}

TEST_F(Train, AReaderThatIsGoneStopsItAndItSaves) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  const std::vector<std::string> flags{"--set", "train.steps=100000000",  "--set", "train.save_every=1000000",
                                       "--set", "train.validate_every=50"};
  Running running(config(), flags, ends[1]);
  close(ends[1]);
  std::string said;
  char byte = 0;
  while (said.find("validation loss") == std::string::npos && read(ends[0], &byte, 1) == 1) said += byte;
  close(ends[0]);
  EXPECT_EQ(running.wait(), 3) << said;
  ASSERT_FALSE(list_checkpoints(folder_ / "out/checkpoints").empty());
  EXPECT_GE(read_checkpoint(list_checkpoints(folder_ / "out/checkpoints").front()).step, 50);
  EXPECT_TRUE(has("out/model.safetensors"));
}

TEST_F(Train, ASignalEndsItBeforeTheFirstStepToo) {
  // So much text without repetition that learning its tokens takes many seconds.
  Random random(1);
  std::string text;
  for (int line = 0; line < 20000; ++line) {
    for (int i = 0; i < 100; ++i) text += static_cast<char>('a' + random.below(26));
    text += line % 2 == 0 ? "\tx\n" : " y\tz\n";
  }
  put_text(folder_ / "train.tsv", text);
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  Running running(config(), {"--set", "tokenizer.vocabulary=10000000"}, ends[1]);
  close(ends[1]);
  std::string said;
  char byte = 0;
  const auto heard = [&](const char* part) {
    while (said.find(part) == std::string::npos && read(ends[0], &byte, 1) == 1) said += byte;
    return said.find(part) != std::string::npos;
  };
  ASSERT_TRUE(heard("learning the tokenizer")) << said;
  running.signal(SIGTERM);
  EXPECT_TRUE(heard("multihead: stopped before the first step; there was nothing to save\n")) << said;
  EXPECT_EQ(running.wait(), 3);
  close(ends[0]);
  EXPECT_FALSE(has("out"));
}

TEST_F(Train, ASecondRunOnTheFolderIsRefused) {
  Running running(config(), kEndless);
  wait_for_a_checkpoint(folder_ / "out");
  const Ran ran = train("--resume");
  EXPECT_EQ(ran.code, 1);
  EXPECT_EQ(ran.out, fmt::format("multihead: '{}' is in use by process {}; expected a folder that no other run writes "
                                 "to\n",
                                 folder_ / "out", running.process()));
  running.signal(SIGKILL);
  EXPECT_EQ(running.wait(), -1);
  const int64_t steps = read_checkpoint(list_checkpoints(folder_ / "out/checkpoints").front()).step + 1;
  EXPECT_EQ(train(fmt::format("--resume --set train.steps={}", steps)).code, 0);
}

TEST_F(Train, AModelThatDoesNotFitIsRefusedInOneSentence) {
  for (const char* flags : {"", "--check"}) {
    const Ran ran = train(std::string(flags) +
                          " --set model.width=65536 --set model.feed_forward=1000000 --set "
                          "model.encoder_layers=1024");
    EXPECT_EQ(ran.code, 1);
    EXPECT_TRUE(ran.out.starts_with("multihead: train: the model has ")) << ran.out;
    expect_parts(ran, {" parameters, and training it takes at least ", "the memory that is free; try "});
    EXPECT_EQ(std::count(ran.out.begin(), ran.out.end(), '\n'), 1) << ran.out;
    EXPECT_FALSE(has("out"));
  }
}

TEST_F(Train, ADivergedRunSaysWhatToTry) {
  const Ran ran = train(
      "--quiet --set optimizer.learning_rate=100 --set optimizer.weight_decay=10 --set "
      "optimizer.warmup=0 --set optimizer.schedule=constant --set train.steps=500 --set "
      "train.give_up_after=3");
  EXPECT_EQ(ran.code, 1);
  expect_parts(ran, {"multihead: train: the run diverged: the gradients of the last 3 steps",
                     "try a lower "
                     "optimizer.learning_rate (it is 100)"});
}

TEST_F(Train, SaysWhichWeightsItShipped) {
  const Ran ran = train("--set train.ema=0.5");
  EXPECT_EQ(ran.code, 0) << ran.out;
  EXPECT_TRUE(ran.out.find("; of the running mean (the weights have ") != std::string::npos ||
              ran.out.find("; of the weights (the running mean has ") != std::string::npos)
      << ran.out;
  EXPECT_TRUE(ran.out.find(" (running mean of the weights); to use it") != std::string::npos ||
              ran.out.find(" (weights, not their running mean); to use it") != std::string::npos)
      << ran.out;
}

TEST_F(Train, GoesOnFromAModel) {
  EXPECT_EQ(train("--quiet").code, 0);
  const Ran ran = train("--set model.from=" + (folder_ / "out") + " --set train.output=" + (folder_ / "next"));
  EXPECT_EQ(ran.code, 0) << ran.out;
  expect_parts(ran, {", weights of " + (folder_ / "out"), " tokens, " + (folder_ / "out"), "trained 6 steps"});
  EXPECT_EQ(text_of(folder_ / "next/tokenizer.json"), text_of(folder_ / "out/tokenizer.json"));
}

}  // namespace
}  // namespace mh::cli
