// `multihead translate` and `summarise` with Hugging Face's folders: what comes out for every line that goes in.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "multihead/generate/text/translator.h"
#include "tests/cli/run_program.h"
#include "tests/models/text_to_text_folder.h"

namespace mh::cli {
namespace {

class TextToText : public Program {
 protected:
  void SetUp() override {
    Program::SetUp();
    if (IsSkipped()) return;
    test::put_text_to_text(folder_ / "nllb", "m2m_100_lm",
                           {.special = {{3, "eng_Latn"}, {7, "fra_Latn"}, {9, "deu_Latn"}}, .before = {3}});
    test::put_text_to_text(folder_ / "bart", "bart_lm");
    test::put_text_to_text(folder_ / "t5", "t5_lm");
  }
  Ran piped(const std::string& input, const std::string& verb, const std::string& flags, bool both = false) const {
    put_text(folder_ / "in.txt", input);
    return run(verb + " '" + (folder_ / flags) + " < " + in_quotes(folder_ / "in.txt"), both);
  }
  // What the library writes.
  std::string written(const std::string& name, const std::string& line, const TextOptions& text,
                      const std::string& task = "") const {
    const Translator translator = Translator::load(folder_ / name);
    return translator.write({line}, translator.defaults(task).how, text)[0].text();
  }
  void set_tasks(const std::string& name, const nlohmann::json& tasks) const {
    auto config = test::json_file(folder_ / (name + "/config.json"));
    config["task_specific_params"] = tasks;
    put_text(folder_ / (name + "/config.json"), config.dump());
  }
  TemporaryFolder folder_;
};

TEST_F(TextToText, TranslatesAsTheFolderWantsIntoTheLanguageNamed) {
  const Ran ran = piped("w13 w4 w11\n\n\xFF\nw6\n", "translate", "nllb' --to deu_Latn", true);
  EXPECT_EQ(ran.code, 0);
  EXPECT_NE(ran.out.find("skipped line 3: not UTF-8"), std::string::npos) << ran.out;
  const TextOptions german{.languages = {.to = "deu_Latn"}};
  const std::string out = piped("w13 w4 w11\n\n\xFF\nw6\n", "translate", "nllb' --to deu_Latn").out;
  EXPECT_EQ(out, written("nllb", "w13 w4 w11", german) + "\n\n\n" + written("nllb", "w6", german) + "\n");
  EXPECT_EQ(piped("w6\n", "translate", "nllb' --from fra_Latn --to eng").out,
            written("nllb", "w6", {.languages = {.from = "fra_Latn", .to = "eng_Latn"}}) + "\n");
  const Ran unsaid = piped("w6\n", "translate", "nllb'", true);
  EXPECT_NE(unsaid.out.find("the model writes 3 languages, from deu_Latn to fra_Latn; --to says which"),
            std::string::npos);
  const Ran unknown = piped("w6\n", "translate", "nllb' --to xx", true);
  EXPECT_EQ(unknown.code, 1);
  EXPECT_NE(unknown.out.find("knows no language 'xx'; expected one of its 3, such as deu_Latn"), std::string::npos)
      << unknown.out;
  EXPECT_EQ(std::count(unknown.out.begin(), unknown.out.end(), '\n'), 1) << unknown.out;
}

TEST_F(TextToText, FlagsStandInPlaceOfTheFoldersOwn) {
  const auto golden = test::json_file(test::golden_of("m2m_100_lm") + "/generation.json");
  auto options = golden["cases"][1]["options"];  // a beam of 4 and 9 tokens
  put_text(folder_ / "nllb/generation_config.json", options.dump());
  const Translator translator = Translator::load(folder_ / "nllb");
  GenerationConfig how = translator.defaults().how;
  how.search.stop = Stop::exact;
  how.search.penalty = PowerPenalty{0};
  how.search.rules.max_length = 5;
  how.search.rules.no_repeat_ngram = 1;
  const auto object =
      nlohmann::json::parse(piped("w13 w4 w11\n", "translate",
                                  "nllb' --json --stop exact --length-penalty power:0 --max-length 5 --no-repeat 1")
                                .out);
  const Translation wanted = translator.write({"w13 w4 w11"}, how)[0];
  EXPECT_EQ(object["text"], wanted.text());
  EXPECT_NEAR(object["score"].get<double>(), wanted.candidates[0].score, 1e-6);
  EXPECT_EQ(object["tokens"].size(), wanted.candidates[0].token_scores.size());
  EXPECT_EQ(object["alignment"].is_array(), true);
  const std::string drawn = piped("w13\n", "translate", "nllb' --sample --seed 3 --top-k 0 --to deu").out;
  EXPECT_EQ(piped("w13\n", "translate", "nllb' --sample --seed 3 --top-k 0 --to deu").out, drawn);
  EXPECT_EQ(piped("w13\n", "translate", "nllb' --sample --stop hf", true).code, 2);
}

TEST_F(TextToText, SummarisesBehindThePrefixOfTheFolder) {
  set_tasks("t5", {{"summarization", {{"prefix", "w10 w7 "}, {"num_beams", 3}, {"max_new_tokens", 6}}}});
  const Translator model = Translator::load(folder_ / "t5");
  const GenerationConfig how = model.defaults("summarization").how;
  const auto summary = [&](const std::string& line, const std::string& prefix) {
    return model.write({line}, how, {.prefix = prefix})[0];
  };
  EXPECT_EQ(piped("w4 w14\n\nw9\n", "summarise", "t5'").out,
            summary("w4 w14", "w10 w7 ").text() + "\n\n" + summary("w9", "w10 w7 ").text() + "\n");
  EXPECT_EQ(piped("w4 w14\n", "summarise", "t5' --prefix 'w12 '").out, summary("w4 w14", "w12 ").text() + "\n");
  const auto object = nlohmann::json::parse(piped("w4 w14\n", "summarise", "t5' --json").out);
  const Translation wanted = summary("w4 w14", "w10 w7 ");
  EXPECT_EQ(object["line"], 1);
  EXPECT_EQ(object["text"], wanted.text());
  EXPECT_EQ(object["tokens"], wanted.candidates[0].token_scores.size());
  EXPECT_EQ(object["source_tokens"], 5);
  EXPECT_EQ(object["ended"], wanted.candidates[0].ended);
  EXPECT_EQ(object["cut"], false);
}

TEST_F(TextToText, SaysWhichTextsAreCut) {
  std::string line;
  for (int n = 0; n < 60; ++n) line += "w6 ";
  const Ran ran = piped("w6\n" + line + "\n", "summarise", "bart'", true);
  EXPECT_EQ(ran.code, 0);
  EXPECT_NE(ran.out.find("line 2 is too long for the model (180 bytes); only its beginning is summarised"),
            std::string::npos)
      << ran.out;
  EXPECT_EQ(ran.out.find("line 1"), std::string::npos) << ran.out;
  const Ran short_cut = piped("w6 w7 w8 w9\n", "summarise", "bart' --max-source 3", true);
  EXPECT_NE(short_cut.out.find("line 1 is too long"), std::string::npos);
  EXPECT_EQ(piped("w6 w7 w8 w9\n", "summarise", "bart' --max-source 3").out,
            piped("w6 w7\n", "summarise", "bart'").out);
}

TEST_F(TextToText, EveryVerbTakesWhatRewritesAndNamesTheRightOneForTheRest) {
  EXPECT_EQ(piped("w6\n", "translate", "bart'").out, piped("w6\n", "summarise", "bart'").out);
  EXPECT_EQ(piped("w6\n", "summarise", "nllb'").code, 0);
  for (const std::string verb : {"translate", "summarise"}) {
    const Ran ran = run(verb + " " + in_quotes(test::golden_of("bert_token")) + " < /dev/null", true);
    EXPECT_EQ(ran.code, 1);
    EXPECT_NE(ran.out.find("use `multihead tag`"), std::string::npos) << ran.out;
  }
  std::filesystem::remove(folder_ / "bart/tokenizer.json");
  const Ran ran = piped("w6\n", "summarise", "bart'", true);
  EXPECT_EQ(ran.code, 1);
  EXPECT_NE(ran.out.find("the folder has no tokenizer"), std::string::npos) << ran.out;
}

}  // namespace
}  // namespace mh::cli
