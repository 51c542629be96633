// `multihead train`: what it prints, what it refuses, and that a run stopped by a signal goes on.
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <thread>

#include "multihead/io/checkpoint.h"
#include "multihead/train/config.h"
#include "tests/cli/run_program.h"
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

TEST_F(Train, QuietSaysOnlyHowItEnded) {
  const Ran ran = train("--quiet");
  EXPECT_EQ(ran.code, 0);
  EXPECT_TRUE(ran.out.starts_with("trained 6 steps")) << ran.out;
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
  expect_parts(ran, {"train.tsv:1: the line has 1 column; expected a sentence in column 2"});
}

TEST_F(Train, SaysWhatWasLeftOut) {
  put_text(folder_ / "train.tsv",
           text_of(folder_ / "train.tsv") + "\none\tein\xFFs\n" + std::string(1 << 20, 'x') + "\n");
  const Ran ran = train("--check");
  EXPECT_EQ(ran.code, 0);
  expect_parts(ran, {"left out 1 of 123 lines (line 121): an empty side", "(line 122): not UTF-8",
                     "(line 123): more than 65536 bytes"});
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

TEST_F(Train, ASignalStopsItAndResumeGoesOn) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    execl(MH_PROGRAM, MH_PROGRAM, "train", config().c_str(), "--quiet", "--set", "train.steps=100000000", "--set",
          "train.save_every=1", "--set", "optimizer.schedule=constant", static_cast<char*>(nullptr));
    _exit(127);
  }
  // Any of its checkpoints: each is there for two steps only.
  for (int i = 0; i < 3000 && list_checkpoints(folder_ / "out/checkpoints").empty(); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  kill(child, SIGTERM);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 3);
  // One step more than is done: the run is whole, and this is its end.
  const std::string saved = folder_ / "out/config.toml";
  const int64_t steps = read_checkpoint(list_checkpoints(folder_ / "out/checkpoints").front()).step + 1;
  const Ran ran = run(fmt::format("train {} --resume --set train.steps={}", in_quotes(saved), steps), true);
  EXPECT_EQ(ran.code, 0) << ran.out;
  expect_parts(ran, {fmt::format("train.steps was 100000000 and is {}", steps), "are done", "best validation loss"});
}

}  // namespace
}  // namespace mh::cli
