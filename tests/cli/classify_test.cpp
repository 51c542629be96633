// `multihead classify`, `tag` and `eval` of their models: what comes out for every line that goes in.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "multihead/tasks/verbs/classifier.h"
#include "multihead/tasks/verbs/tagger.h"
#include "multihead/train/trainer.h"
#include "tests/cli/run_program.h"
#include "tests/harness/temporary_folder.h"

namespace mh::cli {
namespace {

class LabelVerbs : public Program {
 protected:
  void SetUp() override {
    Program::SetUp();
    if (IsSkipped()) return;
    std::string texts, tags;
    for (int n = 0; n < 20; ++n) {
      texts += n % 2 == 0 ? "yes,good film\n" : "no,bad film\n";
      tags += n % 2 == 0 ? "Ada B-PER\nsings O\n\n" : "\u00FC O\nin O\nRome B-LOC\n\n";
    }
    put_text(folder_ / "texts.csv", "label,text\n" + texts);
    put_text(folder_ / "tags.conll", tags);
    train_one(TaskKind::classify, "texts.csv", "classifier");
    train_one(TaskKind::tag, "tags.conll", "tagger");
  }
  void train_one(TaskKind task, const std::string& data, const std::string& output,
                 LabelKind labels = LabelKind::one) const {
    TrainConfig c;
    c.task.kind = task;
    c.task.labels = labels;
    c.model = {.vocabulary = 0,
               .width = 16,
               .heads = 2,
               .feed_forward = 24,
               .encoder_layers = 1,
               .dropout = 0,
               .max_length = 16};
    c.tokenizer = {.kind = TokenizerKind::words, .min_count = 1};
    c.data.train = c.data.valid = folder_ / data;
    if (task == TaskKind::classify) c.data.text = "text", c.data.label = "label";
    c.data.max_length = 16;
    c.optimizer.learning_rate = 1e-2;
    c.optimizer.warmup = 0;
    c.train.output = folder_ / output;
    c.train.steps = 30;
    c.train.threads = 1;
    train({.config = c});
  }
  Ran piped(const std::string& input, const std::string& arguments, bool both = false) const {
    put_text(folder_ / "in.txt", input);
    return run(arguments + " < " + in_quotes(folder_ / "in.txt"), both);
  }
  TemporaryFolder folder_;
};

// What is right is read as the configuration beside the model says.
TEST_F(LabelVerbs, SeveralLabelsAndNumbersAreJudgedByTheirOwnMetrics) {
  std::string sets, numbers;
  for (int n = 0; n < 20; ++n) {
    sets += n % 2 == 0 ? "\"good, film\",good film\n" : "film,bad film\n";
    numbers += n % 2 == 0 ? "1.5,good film\n" : "-0.5,bad film\n";
  }
  put_text(folder_ / "sets.csv", "label,text\n" + sets);
  put_text(folder_ / "numbers.csv", "label,text\n" + numbers);
  train_one(TaskKind::classify, "sets.csv", "sets", LabelKind::several);
  train_one(TaskKind::classify, "numbers.csv", "numbers", LabelKind::number);
  const auto eval = [&](const std::string& name) {
    return "eval " + in_quotes(folder_ / name) + " " + in_quotes(folder_ / (name + ".csv"));
  };
  EXPECT_TRUE(run(eval("sets")).out.starts_with("micro_f1 1.0000\nmacro_f1 1.0000\nexact_match 1.0000\nloss 0."));
  EXPECT_TRUE(run(eval("numbers")).out.starts_with("pearson 1.0000\nspearman 1.0000\nmean_absolute_error 0."));
  EXPECT_EQ(nlohmann::json::parse(run(eval("sets") + " --json").out).at("texts"), 20);
  EXPECT_NE(run(eval("sets") + " --confusion", true).out.find("for one label of a text"), std::string::npos);
  const std::string said = piped("good film", "classify --all " + in_quotes(folder_ / "sets")).out;
  EXPECT_NE(said.find("good\t0."), std::string::npos) << said;
  EXPECT_NE(said.find("film\t0."), std::string::npos) << said;
  EXPECT_TRUE(piped("good film", "classify " + in_quotes(folder_ / "numbers")).out.starts_with("LABEL_0\t1."));
}

TEST_F(LabelVerbs, ALineGetsItsLabel) {
  const std::string verb = "classify " + in_quotes(folder_ / "classifier");
  const Classifier classifier = Classifier::load(folder_ / "classifier");
  const auto shown = [&](const std::string& text) {
    const Classification one = classifier(text);
    return fmt::format("{}\t{:.4f}\n", one.label, one.score);
  };
  EXPECT_EQ(piped("good film\nbad film\n\n", verb).out, shown("good film") + shown("bad film") + shown(""));
  EXPECT_TRUE(piped("good film", verb).out.starts_with("yes\t"));
  const auto json = nlohmann::json::parse(piped("bad film", verb + " --json --all").out);
  EXPECT_EQ(json.at("label"), "no");
  EXPECT_NEAR(json.at("scores").at("no").get<double>() + json.at("scores").at("yes").get<double>(), 1, 1e-5);
  EXPECT_TRUE(piped("bad film", verb + " --all").out.starts_with("no\t"));
  const Ran broken = piped("good film\n\xFF\nbad film\n", verb, true);
  EXPECT_NE(broken.out.find("skipped line 2: not UTF-8"), std::string::npos) << broken.out;
  EXPECT_NE(broken.out.find("\n\nno\t"), std::string::npos) << broken.out;
}

TEST_F(LabelVerbs, EntitiesHaveLinesOfTheirOwn) {
  const std::string verb = "tag " + in_quotes(folder_ / "tagger");
  EXPECT_EQ(piped("Ada sings", verb + " --words").out, "Ada\tB-PER\nsings\tO\n\n");
  const std::string out = piped("\u00FC in Rome\nin\n", verb).out;
  EXPECT_NE(out.find("5\t9\tLOC\t"), std::string::npos) << out;  // characters, not bytes
  EXPECT_NE(out.find("\tRome\n"), std::string::npos) << out;
  EXPECT_TRUE(out.ends_with("\n\n")) << out;
  const auto json = nlohmann::json::parse(piped("in Rome", verb + " --json").out);
  EXPECT_EQ(json.back().at("text"), "Rome");
}

TEST_F(LabelVerbs, EvalTellsTheMetricsOfTheTask) {
  const std::string of = "eval " + in_quotes(folder_ / "classifier") + " " + in_quotes(folder_ / "texts.csv");
  EXPECT_TRUE(run(of).out.starts_with("accuracy 1.0000\nmacro_f1 1.0000\nmatthews 1.0000\nloss "));
  EXPECT_NE(run(of + " --confusion").out.find("right \\ said\tno\tyes\nno\t10\t0\nyes\t0\t10\n"), std::string::npos);
  EXPECT_EQ(nlohmann::json::parse(run(of + " --json --confusion").out).at("confusion")[1][1], 10);
  EXPECT_NE(run(of + " --set data.label=none", true).out.find("there is no column 'none'"), std::string::npos);
  const std::string tagger = "eval " + in_quotes(folder_ / "tagger") + " " + in_quotes(folder_ / "tags.conll");
  EXPECT_TRUE(run(tagger).out.starts_with("f1 1.0000\nprecision 1.0000\n"));
  EXPECT_EQ(run(tagger + " --confusion").code, 2);
  EXPECT_NE(run("tag " + in_quotes(folder_ / "classifier") + " < /dev/null", true)
                .out.find("is a classify text classifier; expected a token classifier: use `multihead classify`"),
            std::string::npos);
}

}  // namespace
}  // namespace mh::cli
