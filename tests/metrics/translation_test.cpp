// BLEU and chrF: the figures and signatures of sacreBLEU, on sentences of every kind.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "multihead/metrics/bleu.h"
#include "multihead/metrics/chrf.h"
#include "tests/harness/refusal.h"
#include "tests/metrics/golden.h"

namespace mh {
namespace {

using Json = nlohmann::json;
using Lines = std::vector<std::string>;

Lines lines_of(const std::string& name) {
  std::ifstream in(MH_TEST_DATA "/metrics/golden/" + name);
  Lines out;
  for (std::string line; std::getline(in, line);) out.push_back(line);
  EXPECT_EQ(out.size(), 500u) << name;
  return out;
}

BleuOptions bleu_options(const Json& row) {
  const std::map<std::string, BleuTokenizer> tokenizers = {{"13a", BleuTokenizer::v13a},
                                                           {"zh", BleuTokenizer::zh},
                                                           {"intl", BleuTokenizer::intl},
                                                           {"char", BleuTokenizer::characters},
                                                           {"none", BleuTokenizer::none}};
  const std::map<std::string, BleuSmoothing> smoothings = {{"exp", BleuSmoothing::exponential},
                                                           {"floor", BleuSmoothing::floor},
                                                           {"add-k", BleuSmoothing::add_k},
                                                           {"none", BleuSmoothing::none}};
  BleuOptions options;
  options.tokenizer = tokenizers.at(row.at("tokenize"));
  options.smoothing = smoothings.at(row.value("smooth_method", "exp"));
  if (row.contains("smooth_value") && !row.at("smooth_value").is_null())
    options.smoothing_value = row.at("smooth_value").get<double>();
  options.lower_case = row.value("lowercase", false);
  options.effective_order = row.value("effective_order", false);
  return options;
}

// All but the version, which is theirs and ours.
void expect_signature(const std::string& ours, const std::string& theirs) {
  const auto start = [](const std::string& signature) { return signature.substr(0, signature.find("|version:")); };
  EXPECT_EQ(start(ours), start(theirs));
  EXPECT_NE(ours.find("|version:multihead-"), std::string::npos) << ours;
}

void expect_bleu(const Bleu& ours, const Json& row) {
  EXPECT_DOUBLE_EQ(ours.score, row.at("score").get<double>()) << row;
  for (size_t n = 0; n < 4; ++n) EXPECT_DOUBLE_EQ(ours.precisions[n], row.at("precisions").at(n).get<double>()) << row;
  EXPECT_DOUBLE_EQ(ours.brevity_penalty, row.at("bp").get<double>()) << row;
  EXPECT_EQ(ours.hypothesis_length, row.at("sys_len")) << row;
  EXPECT_EQ(ours.reference_length, row.at("ref_len")) << row;
  expect_signature(ours.signature, row.at("signature"));
}

void expect_chrf(const Lines& hypotheses, const std::vector<Lines>& references, const Json& row) {
  ChrfOptions options;
  options.char_order = row.value("char_order", 6);
  options.word_order = row.value("word_order", row.at("metric") == "chrF++" ? 2 : 0);
  options.beta = row.value("beta", 2.0);
  options.lower_case = row.value("lowercase", false);
  const Chrf ours = chrf(hypotheses, references, options);
  EXPECT_DOUBLE_EQ(ours.score, row.at("score").get<double>()) << row;
  expect_signature(ours.signature, row.at("signature"));
}

struct Corpus {
  explicit Corpus(const std::string& language) : hypotheses(lines_of(language + ".hyp.txt")) {
    const Lines first = lines_of(language + ".ref0.txt"), second = lines_of(language + ".ref1.txt");
    for (size_t i = 0; i < first.size(); ++i) {
      references[1].push_back({first[i]});
      references[2].push_back({first[i], second[i]});
    }
  }
  Lines hypotheses;
  std::map<int, std::vector<Lines>> references;  // by their number
};

TEST(Metrics, AreSacreBleusOnGermanAndChinese) {
  const std::map<std::string, Corpus> corpora = {{"de", Corpus("de")}, {"zh", Corpus("zh")}};
  std::map<std::string, int> seen;
  for (const Json& row : golden_json("sacrebleu.json")) {
    const Corpus& corpus = corpora.at(row.at("set"));
    const std::vector<Lines>& references = corpus.references.at(row.at("refs"));
    ++seen[row.at("metric")];
    if (row.at("metric") == "BLEU") {
      const Bleu ours = bleu(corpus.hypotheses, references, bleu_options(row));
      expect_bleu(ours, row);
      for (size_t n = 0; n < 4; ++n) {
        const int64_t added = n > 0 && row.at("smooth_method") == "add-k" && row.at("counts").at(n) != 0 ? 1 : 0;
        EXPECT_EQ(ours.matches[n] + added, row.at("counts").at(n)) << row;
        EXPECT_EQ(ours.totals[n] + added, row.at("totals").at(n)) << row;
      }
    } else if (row.at("metric") == "sentence-BLEU") {
      for (size_t i = 0; i < 50; ++i)
        EXPECT_DOUBLE_EQ(bleu({corpus.hypotheses[i]}, {references[i]}, bleu_options(row)).score,
                         row.at("scores").at(i).get<double>());
    } else {
      expect_chrf(corpus.hypotheses, references, row);
    }
  }
  EXPECT_EQ(seen, (std::map<std::string, int>{{"BLEU", 46}, {"chrF", 4}, {"chrF++", 4}, {"sentence-BLEU", 2}}));
}

TEST(Metrics, AreSacreBleusOnOddSentencesAndVaryingReferences) {
  size_t scores = 0;
  for (const Json& corpus : golden_json("odd.json")) {
    const Lines hypotheses = corpus.at("hypotheses");
    const std::vector<Lines> references = corpus.at("references");
    for (const Json& row : corpus.at("scores")) {
      ++scores;
      if (row.at("metric") == "BLEU") {
        expect_bleu(bleu(hypotheses, references, bleu_options(row)), row);
      } else {
        expect_chrf(hypotheses, references, row);
      }
    }
  }
  EXPECT_GE(scores, 400u);
}

TEST(Metrics, AShorterReferenceWinsATie) {
  EXPECT_EQ(bleu({"a b c"}, {{"a b c d", "a b"}}).reference_length, 2);
  EXPECT_EQ(bleu({"a b c"}, {{"a b", "a b c d"}}).reference_length, 2);
}

TEST(Metrics, BrokenTextIsReadAsReplacementCharacters) {
  // As Python decodes with errors="replace": one for the cut-off character, one for the stray byte.
  const BleuOptions characters{.tokenizer = BleuTokenizer::characters};
  EXPECT_EQ(bleu({"a\xe4\xbd"
                  "b\xff"},
                 {{"a\xef\xbf\xbd"
                   "b\xef\xbf\xbd"}},
                 characters)
                .matches,
            (std::array<int64_t, 4>{4, 3, 2, 1}));
  EXPECT_EQ(chrf({"a\xff"}, {{"a\xef\xbf\xbd"}}).score, 100);
}

TEST(Metrics, RefuseWhatHasNoScore) {
  EXPECT_TRUE(refusal_of([] { bleu({}, {}); }).says("bleu: no sentences"));
  EXPECT_TRUE(refusal_of([] { bleu({"a"}, {}); }).says("1 sentences and references for 0"));
  EXPECT_TRUE(refusal_of([] { chrf({"a", "b"}, {{"a"}, {}}); }).says("sentence 2 has no reference"));
  EXPECT_TRUE(refusal_of([] { chrf({"a"}, {{"a"}}, {.char_order = 0}); }).says("orders 0"));
  EXPECT_TRUE(refusal_of([] { chrf({"a"}, {{"a"}}, {.beta = 0}); }).says("beta is 0"));
}

}  // namespace
}  // namespace mh
