// `multihead eval` as users run it.
#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "multihead/metrics/answers.h"
#include "multihead/metrics/bleu.h"
#include "multihead/tasks/language_model.h"
#include "multihead/tasks/verbs/answerer.h"
#include "tests/cli/run_program.h"
#include "tests/generate/tiny_translator.h"
#include "tests/harness/temporary_folder.h"
#include "tests/models/encoder_folder.h"

namespace mh {
namespace {

using cli::in_quotes;
using cli::Ran;
using cli::run;

class Eval : public cli::Program {
 protected:
  void SetUp() override {
    Program::SetUp();
    if (IsSkipped()) return;
    test::write_translator(folder_.path());
    put_text(folder_ / "set.tsv", "the cat sat\tx\na dog\ty\n");
  }
  Ran eval(const std::string& file, const std::string& flags = "", bool both = false) {
    return run("eval " + in_quotes(folder_.path()) + " " + in_quotes(folder_ / file) + " " + flags, both);
  }
  TemporaryFolder folder_;
};

TEST_F(Eval, TranslationsAreScoredAgainstAllReferences) {
  const Ran first = eval("set.tsv", "--output " + in_quotes(folder_ / "out.txt"));
  ASSERT_EQ(first.code, 0);
  const std::string out = text_of(folder_ / "out.txt");
  ASSERT_EQ(std::count(out.begin(), out.end(), '\n'), 2);
  // The first is right by its second reference, the second by its first.
  const size_t middle = out.find('\n');
  put_text(folder_ / "same.tsv", "the cat sat\twrong\t" + out.substr(0, middle) + "\na dog\t" + out.substr(middle + 1));
  const Ran ran = eval("same.tsv", "--json");
  ASSERT_EQ(ran.code, 0);
  const auto json = nlohmann::json::parse(ran.out);
  const std::string texts[] = {out.substr(0, middle), out.substr(middle + 1, out.size() - middle - 2)};
  EXPECT_NEAR(json.at("bleu"), bleu({texts[0], texts[1]}, {{"wrong", texts[0]}, {texts[1]}}).score, 1e-9);
  EXPECT_NEAR(json.at("chrf"), 100, 1e-9);
  EXPECT_EQ(json.at("sentences"), 2);
  EXPECT_EQ(json.at("bleu_signature").get<std::string>().substr(0, 10), "nrefs:var|");
  EXPECT_NE(first.out.find("BLEU 0"), std::string::npos) << first.out;
}

TEST_F(Eval, ALanguageModelIsScoredByItsPerplexity) {
  put_text(folder_ / "text.txt", "the cat sat\non the mat\n");
  const std::string model = folder_ / "lm";
  std::filesystem::create_directories(model);
  LanguageModelTask task({.task = {.kind = TaskKind::language_model},
                          .model = {.vocabulary = 0,
                                    .width = 16,
                                    .heads = 2,
                                    .feed_forward = 24,
                                    .encoder_layers = 0,
                                    .decoder_layers = 1,
                                    .max_length = 16},
                          .tokenizer = {.vocabulary = 270},
                          .data = {.train = folder_ / "text.txt"}});
  task.make_model(std::make_shared<ParamStore>());
  task.begin(model);
  task.save(model);
  LanguageModelFolder loaded = load_language_model(model);
  const TextScores scores = score_text(loaded, folder_ / "text.txt");
  const std::string call = "eval " + in_quotes(model) + " " + in_quotes(folder_ / "text.txt");
  const auto json = nlohmann::json::parse(run(call + " --json").out);
  EXPECT_EQ(json.at("tokens"), scores.tokens);
  EXPECT_EQ(json.at("words"), 6);
  EXPECT_EQ(json.at("bytes"), 23);
  for (const auto& [name, value] : scores.metrics()) EXPECT_NEAR(json.at(name).get<double>(), value, 1e-9) << name;
  EXPECT_NE(run(call).out.find("2 lines, 6 words, "), std::string::npos);
  const TextScores strided = score_text(loaded, folder_ / "text.txt", {.packed = false, .longest = 8, .stride = 2});
  const std::string flags = " --json --set task.packed=false --set data.max_length=8 --set task.stride=2";
  EXPECT_NEAR(nlohmann::json::parse(run(call + flags).out).at("loss").get<double>(), strided.loss(), 1e-9);
  put_text(model + "/config.toml", "[task]\npacked = false\nstride = 2\n[data]\nmax_length = 8\n");
  EXPECT_NEAR(nlohmann::json::parse(run(call + " --json").out).at("loss").get<double>(), strided.loss(), 1e-9);
  EXPECT_EQ(run(call + " --set data.lines=text", true).code, 1);  // its tokenizer has no token for a line's break
  EXPECT_EQ(run(call + " --output " + in_quotes(folder_ / "x"), true).code, 2);
}

TEST_F(Eval, AnAnswererIsScoredAsSquadDoes) {
  const std::string model = folder_ / "question", context = "ada sings in rome .";
  test::put_encoder(model, "bert_question");
  put_text(folder_ / "set.json",
           R"({"data":[{"paragraphs":[{"context":"ada sings in rome .","qas":[)"
           R"({"id":"1","question":"who sings ?","answers":[{"text":"ada","answer_start":0}]},)"
           R"({"id":"2","question":"who sat ?","answers":[{"text":"in rome","answer_start":10}]},)"
           R"({"id":"3","question":"who ?","answers":[{"text":"rome","answer_start":3}]}]}]}]})");
  const Answerer answerer = Answerer::load(model);
  const AnswerScores wanted =
      answer_scores({answerer("who sings ?", context).text, answerer("who sat ?", context).text},
                    std::vector<std::vector<std::string>>{{"ada"}, {"in rome"}});
  const std::string call = "eval " + in_quotes(model) + " " + in_quotes(folder_ / "set.json");
  const auto json = nlohmann::json::parse(run(call + " --json").out);
  EXPECT_EQ(json.at("questions"), 2);
  EXPECT_NEAR(json.at("exact"), wanted.exact_match, 1e-9);
  EXPECT_NEAR(json.at("f1"), wanted.f1, 1e-9);
  const Ran ran = run(call, true);
  EXPECT_NE(ran.out.find(fmt::format("f1 {:.4f}\n", wanted.f1)), std::string::npos) << ran.out;
  EXPECT_NE(ran.out.find("an answer that is not where it is said to be"), std::string::npos) << ran.out;
}

TEST_F(Eval, SaysWhichLinesItSkipped) {
  put_text(folder_ / "broken.tsv", "the cat sat\tx\nna\xEFve\tz\na dog\ty\n");
  const Ran ran = eval("broken.tsv", "", true);
  EXPECT_EQ(ran.code, 0);
  EXPECT_NE(ran.out.find("broken.tsv: skipped 1 of 3 lines (line 2): not UTF-8 at byte 3"), std::string::npos)
      << ran.out;
  EXPECT_NE(ran.out.find("2 sentences"), std::string::npos) << ran.out;
}

TEST_F(Eval, WrongCallsGetOneSentence) {
  EXPECT_EQ(eval("none.tsv").code, 1);
  EXPECT_EQ(run("eval").code, 2);
}

TEST_F(Eval, TheOutputIsCheckedBeforeAnythingIsRead) {
  for (const char* file : {"set.tsv", "none.tsv"}) {
    const Ran ran = eval(file, "--output /nowhere/out.txt", true);
    EXPECT_EQ(ran.code, 1);
    EXPECT_EQ(ran.out, "multihead: cannot write '/nowhere/out.txt': No such file or directory\n");
  }
}

}  // namespace
}  // namespace mh
