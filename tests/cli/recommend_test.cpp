// `multihead recommend` and `eval` of its models: what comes out for every history that goes in.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "multihead/tasks/recommend.h"
#include "multihead/tasks/verbs/recommender.h"
#include "multihead/train/trainer.h"
#include "tests/cli/run_program.h"
#include "tests/tasks/made_histories.h"

namespace mh::cli {
namespace {

class RecommendVerb : public Program {
 protected:
  void SetUp() override {
    Program::SetUp();
    if (IsSkipped()) return;
    test::write_histories(folder_ / "train.tsv", {.users = 30});
    TrainConfig c;
    c.task.kind = TaskKind::recommend;
    c.model = {.vocabulary = 0, .width = 16, .heads = 2, .feed_forward = 24, .decoder_layers = 1, .max_length = 10};
    c.data.train = folder_ / "train.tsv";
    c.data.max_length = 10;
    c.optimizer.learning_rate = 1e-2;
    c.train.output = folder_ / "model";
    c.train.steps = 20;
    c.train.threads = 1;
    train({.config = c});
  }
  Ran piped(const std::string& input, const std::string& arguments, bool both = false) const {
    put_text(folder_ / "in.txt", input);
    return run("recommend " + in_quotes(folder_ / "model") + " " + arguments + " < " + in_quotes(folder_ / "in.txt"),
               both);
  }
  TemporaryFolder folder_;
};

TEST_F(RecommendVerb, ALineIsAHistory) {
  const Recommender recommender = Recommender::load(folder_ / "model");
  const std::vector<std::vector<std::string>> histories{{"film 1", "film 8"}, {}, {"film 3"}};
  const auto found = recommender(histories, {.count = 2});
  std::string wanted;
  for (const auto& items : found) wanted += items[0].item + "\t" + items[1].item + "\n";
  EXPECT_EQ(piped("film 1\tfilm 8\n\nfilm 3\tno film\n", "-k 2").out, wanted);
  const Ran json = piped("film 1\tfilm 8\n", "-k 2 --json");
  const auto object = nlohmann::json::parse(json.out);
  EXPECT_EQ(object.at("items").at(1).at("item"), found[0][1].item);
  EXPECT_NEAR(object.at("items").at(1).at("score"), found[0][1].score, 1e-6);
  EXPECT_NE(piped("film 3\tno film\n", "", true)
                .out.find("line 1: the model does not know 1 of 2 items, the first is 'no film'"),
            std::string::npos);
}

TEST_F(RecommendVerb, ATableHasTheHistoriesOfAllUsers) {
  put_text(folder_ / "two.tsv", "bob\tfilm 8\t2\nann\tfilm 3\t1\nbob\tfilm 1\t1\n");
  const Recommender recommender = Recommender::load(folder_ / "model");
  const std::vector<std::string> bob{"film 1", "film 8"}, ann{"film 3"};
  const std::string wanted = "bob\t" + recommender(bob)[0].item + "\nann\t" + recommender(ann)[0].item + "\n";
  EXPECT_EQ(piped("", "-k 1 --histories " + in_quotes(folder_ / "two.tsv")).out, wanted);
}

TEST_F(RecommendVerb, EvalPrintsTheBaselinesOfTheSameSplit) {
  LanguageModelFolder model = load_language_model(folder_ / "model", kRecommend);
  const Histories read = read_histories(folder_ / "train.tsv", {});
  const Metrics wanted = score_histories(model, item_ids(read, model.tokenizer));
  const std::string call = "eval " + in_quotes(folder_ / "model") + " " + in_quotes(folder_ / "train.tsv");
  std::string lines;
  for (const auto& [name, value] : wanted) lines += fmt::format("{} {:.4f}\n", name, value);
  EXPECT_EQ(run(call).out, lines);
  EXPECT_EQ(nlohmann::json::parse(run(call + " --json").out).at("users"), 30);
  put_text(folder_ / "other.tsv", "ann\tno film\t1\nann\tfilm 1\t2\n");
  const Ran refused = run("eval " + in_quotes(folder_ / "model") + " " + in_quotes(folder_ / "other.tsv"), true);
  EXPECT_EQ(refused.code, 1);
  EXPECT_NE(refused.out.find("(line 1): an item that the model does not know"), std::string::npos) << refused.out;
}

TEST_F(RecommendVerb, OtherVerbsSayWhichOneItIsFor) {
  const Ran ran = run("embed " + in_quotes(folder_ / "model") + " < /dev/null", true);
  EXPECT_NE(ran.out.find("use `multihead recommend`"), std::string::npos) << ran.out;
  EXPECT_EQ(run("generate " + in_quotes(folder_ / "model") + " -p x", true).code, 1);
}

}  // namespace
}  // namespace mh::cli
