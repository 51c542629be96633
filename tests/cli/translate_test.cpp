// `multihead translate` as users run it.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>
#include <vector>

#include "tests/cli/run_program.h"
#include "tests/generate/tiny_translator.h"
#include "tests/harness/temporary_folder.h"

namespace mh {
namespace {

using cli::in_quotes;
using cli::Ran;
using cli::run;

class Translate : public cli::Program {
 protected:
  void SetUp() override {
    Program::SetUp();
    if (!IsSkipped()) test::write_translator(folder_.path());
  }
  // Lines given as printf writes them.
  Ran translate(const std::string& lines, const std::string& flags = "", bool both = false) {
    return run("translate " + in_quotes(folder_.path()) + " " + flags, both, "printf " + in_quotes(lines) + " |");
  }
  static std::vector<std::string> split(const std::string& text, char at = '\n') {
    std::vector<std::string> parts;
    std::istringstream in(text);
    for (std::string part; std::getline(in, part, at);) parts.push_back(part);
    return parts;
  }
  TemporaryFolder folder_;
};

TEST_F(Translate, EveryLineInIsALineOut) {
  const Ran ran = translate("the cat\\n\\na dog\\nthe mat");
  EXPECT_EQ(ran.code, 0);
  const auto lines = split(ran.out);
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_EQ(lines[1], "");
  EXPECT_FALSE(lines[0].empty());
  EXPECT_EQ(translate("").out, "");
  EXPECT_EQ(translate("").code, 0);
}

TEST_F(Translate, BatchAndThreadsChangeNothing) {
  std::string text;
  for (int n = 0; n < 40; ++n) text += std::string(n % 7, 'a') + " cat sat on\\n";
  const std::string wanted = translate(text, "--scores").out;
  EXPECT_EQ(translate(text, "--scores --batch 1 --threads 1").out, wanted);
  EXPECT_EQ(translate(text, "--scores --batch 100 --threads 3").out, wanted);
}

TEST_F(Translate, ColumnsAreNumberScoreTextPairs) {
  const Ran ran = translate("the cat sat\\na dog\\n", "--nbest 3 --beam 3 --scores --alignments");
  EXPECT_EQ(ran.code, 0);
  const auto lines = split(ran.out);
  ASSERT_EQ(lines.size(), 6u) << ran.out;
  double before = 0;
  for (size_t n = 0; n < 6; ++n) {
    const auto columns = split(lines[n], '\t');
    ASSERT_EQ(columns.size(), 4u) << lines[n];
    EXPECT_EQ(columns[0], n < 3 ? "1" : "2");
    const double score = std::stod(columns[1]);
    EXPECT_LT(score, 0);
    if (n % 3 > 0) {
      EXPECT_LE(score, before);
    }
    before = score;
    const auto words = split(columns[2], ' ');
    for (const std::string& pair : split(columns[3], ' ')) {
      int i = -1, j = -1;
      EXPECT_EQ(std::sscanf(pair.c_str(), "%d-%d", &i, &j), 2) << pair;
      EXPECT_TRUE(i >= 0 && i < (n < 3 ? 3 : 2)) << pair;
      EXPECT_TRUE(j >= 0 && j < static_cast<int>(words.size())) << pair;
    }
  }
}

TEST_F(Translate, SamplesDependOnTheSeedAndTheLineAlone) {
  const std::string text = "the cat\\nthe cat\\nthe cat\\n";
  const std::string one = translate(text, "--sample --temperature 2 --seed 3").out;
  EXPECT_EQ(translate(text, "--sample --temperature 2 --seed 3 --batch 1").out, one);
  EXPECT_EQ(translate(text, "--sample --temperature 2 --seed 3 --alone").out, one);
  EXPECT_NE(translate(text, "--sample --temperature 2 --seed 4").out, one);
  const auto lines = split(one);
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_NE(lines[0], lines[1]);
}

TEST_F(Translate, DrawsAttention) {
  const Ran ran = translate("the cat sat\\n", "--attention");
  EXPECT_EQ(ran.code, 0);
  EXPECT_NE(ran.out.find("cat"), std::string::npos) << ran.out;
  EXPECT_NE(ran.out.find("</s>"), std::string::npos);
  EXPECT_NE(ran.out.find("▒"), std::string::npos);
  EXPECT_EQ(ran.out.find('\033'), std::string::npos);  // no colours into a pipe
  EXPECT_NE(translate("the cat sat\\n", "--attention --layer 1 --head 2").out, ran.out);
}

TEST_F(Translate, SentencesOfALineAreTranslatedEachForItself) {
  const auto alone = split(translate("The cat sat.\\nA dog?\\n").out);
  ASSERT_EQ(alone.size(), 2u);
  EXPECT_EQ(translate("The cat sat.   A dog?\\n").out, alone[0] + "   " + alone[1] + "\n");
  EXPECT_NE(translate("The cat sat.   A dog?\\n", "--whole").out, alone[0] + "   " + alone[1] + "\n");
  EXPECT_EQ(translate("The cat sat.\\n", "--whole").out, alone[0] + "\n");
}

TEST_F(Translate, JsonHasTextScoresAndPairs) {
  const std::string text = "the cat sat. A dog\\n\\nthe mat\\n";
  const Ran ran = translate(text, "--json --nbest 2");
  EXPECT_EQ(ran.code, 0);
  const auto lines = split(ran.out);
  const auto columns = split(translate(text, "--nbest 2 --scores --alignments").out);
  ASSERT_EQ(lines.size(), 5u) << ran.out;
  ASSERT_EQ(columns.size(), 5u);
  for (size_t n = 0; n < 5; ++n) {
    const auto object = nlohmann::json::parse(lines[n]);
    const auto wanted = split(columns[n] + "\t", '\t');  // number, score, text, pairs
    EXPECT_EQ(object.size(), 7u);
    EXPECT_EQ(std::to_string(object.at("line").get<int>()), wanted.at(0));
    EXPECT_EQ(object.at("rank"), n == 1 || n == 4 ? 2 : 1);
    EXPECT_NEAR(object.at("score").get<double>(), std::stod(wanted.at(1)), 1e-4);
    EXPECT_EQ(object.at("text"), wanted.at(2));
    EXPECT_FALSE(object.at("cut"));
    std::string pairs;
    for (const auto& pair : object.at("alignment"))
      pairs +=
          (pairs.empty() ? "" : " ") + std::to_string(pair[0].get<int>()) + "-" + std::to_string(pair[1].get<int>());
    EXPECT_EQ(pairs, n == 2 ? "" : wanted.at(3));
    // The score of one sentence is the mean of its tokens': the penalty is power:1.
    double sum = 0;
    for (const auto& token : object.at("tokens")) sum += token.at("log_p").get<double>();
    if (n > 2) {
      EXPECT_NEAR(sum / static_cast<double>(object.at("tokens").size()), object.at("score").get<double>(), 1e-5);
    }
    EXPECT_EQ(object.at("tokens").empty(), n == 2);
  }
  EXPECT_EQ(translate("a\\n", "--json --scores").code, 2);
}

TEST_F(Translate, WarnNamesTheLinesWithALowScore) {
  const std::string text = "the cat\\n\\nthe mat and\\n";
  EXPECT_EQ(translate(text, "", true).out, translate(text).out);
  const Ran all = translate(text, "--warn --warn-below 0", true),
            none = translate(text, "--warn --warn-below -100", true);
  EXPECT_EQ(none.out, translate(text).out);
  EXPECT_NE(all.out.find("line 1 has a low score (-"), std::string::npos) << all.out;
  EXPECT_EQ(all.out.find("line 2 has"), std::string::npos);
  EXPECT_NE(all.out.find("line 3 has a low score (-"), std::string::npos);
  EXPECT_EQ(translate(text, "--warn --warn-below 0").out, translate(text).out);  // stdout stays as it is
  EXPECT_EQ(translate(text, "--warn-below -1").code, 2);
  EXPECT_EQ(translate(text, "--warn --warn-below 1").code, 2);
}

// The second line goes in only when the first has come out.
TEST_F(Translate, ALineComesOutBeforeTheNextGoesIn) {
  const std::string back = in_quotes(folder_ / "back");
  const Ran ran =
      run("translate " + in_quotes(folder_.path()) + " | tee -p " + back, false,
          "mkfifo " + back + "; (echo the cat; timeout 20 head -n 1 " + back + " | grep -c . | sed s/1/dog/) |");
  const auto alone = split(translate("the cat\\ndog\\n").out);
  EXPECT_EQ(split(ran.out), alone) << ran.out;
}

TEST_F(Translate, ALineTooLongIsCutAndSaid) {
  const Ran ran = run("translate " + in_quotes(folder_.path()), true,
                      "(printf 'a dog\\n'; head -c 3000000 /dev/zero | tr '\\0' x; printf '\\na dog\\n') |");
  EXPECT_EQ(ran.code, 0);
  EXPECT_NE(ran.out.find("line 2 is too long for the model (3000000 bytes)"), std::string::npos) << ran.out;
  const auto lines = split(ran.out);
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_EQ(lines.front(), lines.back());
}

TEST_F(Translate, SaysHowFastItWas) {
  const Ran ran = translate("a dog\\nthe cat\\n", "--time", true);
  EXPECT_NE(ran.out.find("2 sentences, "), std::string::npos) << ran.out;
  EXPECT_NE(ran.out.find("sentences/s"), std::string::npos);
  EXPECT_NE(translate("", "--time", true).out.find("0 sentences, 0 tokens in 0.00 s: 0.0 "), std::string::npos);
}

TEST_F(Translate, FindsTheModelOfTheEnvironment) {
  const Ran ran = run("translate", false, "echo a dog | MULTIHEAD_MODEL=" + in_quotes(folder_.path()));
  EXPECT_EQ(ran.code, 0);
  EXPECT_EQ(ran.out, translate("a dog\\n").out);
}

TEST_F(Translate, WrongCallsGetOneSentence) {
  const std::tuple<const char*, int, const char*> wrong[] = {
      {"--nbest 5 --beam 4", 1, "the 5 best of a beam of 4, which finishes 4"},
      {"--beam 64", 2, "--beam: '64' does not fit; expected a whole number from 1 to 63"},
      {"--length-penalty x", 2, "power[:ALPHA]"},
      {"--length-penalty power:", 2, "power[:ALPHA]"},
      {"--attention --layer 3", 1, "2 layers"},
      {"--attention --head 4", 1, "3 heads"},
      {"--layer 1", 1, "--layer goes with --attention, --alignments or --json"},
      {"--sample --temperature 0", 2, "--temperature"},
  };
  for (const auto& [flags, code, part] : wrong) {
    const Ran ran = translate("a dog\\n", flags, true);
    EXPECT_EQ(ran.code, code) << flags;
    EXPECT_NE(ran.out.find(part), std::string::npos) << ran.out;
    EXPECT_EQ(std::count(ran.out.begin(), ran.out.end(), '\n'), 1) << ran.out;
  }
  const Ran none = run("translate /nowhere", true, "echo x |");
  EXPECT_EQ(none.code, 1);
  EXPECT_NE(none.out.find("'/nowhere' is not there; expected a folder with"), std::string::npos) << none.out;
  EXPECT_EQ(translate("a\\n", "--beam 0").code, 2);
}

TEST_F(Translate, BrokenLinesAreEmptyAndNamed) {
  const auto wanted = split(translate("the cat\\n\\na dog\\n").out);
  const Ran ran = translate("\\357\\273\\277the cat\\nna\\357ve cat\\na dog\\n");
  EXPECT_EQ(ran.code, 0);
  EXPECT_EQ(split(ran.out), wanted);
  EXPECT_NE(translate("cat\\ncaf\\351\\n", "", true).out.find("translate: skipped line 2: not UTF-8 at byte 4"),
            std::string::npos);
  const Ran packed = run("translate " + in_quotes(folder_.path()), true, "printf 'the cat' | gzip |");
  EXPECT_EQ(packed.code, 1);
  EXPECT_NE(packed.out.find("stdin: compressed with gzip"), std::string::npos) << packed.out;
}

TEST_F(Translate, AnEmptyModelNameIsRefused) {
  put_text(folder_ / "x.tsv", "x\ty\n");
  for (const std::string& verb : {std::string("translate ''"), "eval '' " + in_quotes(folder_ / "x.tsv")}) {
    const Ran ran = run(verb, true, "echo cat |");
    EXPECT_EQ(ran.code, 1) << verb;
    EXPECT_NE(ran.out.find("empty"), std::string::npos) << ran.out;
  }
}

}  // namespace
}  // namespace mh
