// Fillings and answers against formulas over the model's logits; scores of foreign classifiers.
#include "multihead/tasks/verbs/answerer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "multihead/io/safetensors.h"
#include "multihead/models/pretrained/pretrained.h"
#include "multihead/tasks/verbs/classifier.h"
#include "multihead/tasks/verbs/filler.h"
#include "multihead/text/tokenizer.h"
#include "tests/harness/refusal.h"
#include "tests/models/encoder_folder.h"

namespace mh {
namespace {

class EncoderHeads : public testing::Test {
 protected:
  std::string put(const std::string& name) const {
    const std::string folder = folder_ / name;
    test::put_encoder(folder, name);
    return folder;
  }
  static ModelOutputs run(const std::string& folder, const Encoded& encoded) {
    const auto count = static_cast<int64_t>(encoded.types.size());
    return Pretrained::load(folder).forward(
        {.tokens = token_batch({encoded.ids}), .types = tensor<int32_t>(encoded.types, {count})});
  }
  TemporaryFolder folder_;
};

TEST_F(EncoderHeads, EveryGapHasItsLikeliestTokens) {
  const std::string folder = put("bert_masked"), text = "the [MASK] sat on [MASK] .";
  const Filler filler = Filler::load(folder);
  EXPECT_EQ(filler.mask(), "[MASK]");
  const Tokenizer tokenizer = Tokenizer::load(folder);
  const Tensor logits = run(folder, tokenizer.encode_input(text))["logits"];
  const Filled found = filler(text, 19);
  ASSERT_EQ(found.gaps.size(), 2U);
  for (size_t n = 0; n < 2; ++n) {
    const int64_t row = n == 0 ? 2 : 5;
    double sum = 0;
    for (int64_t id = 0; id < 19; ++id) sum += std::exp(logits.item({row, id}));
    ASSERT_EQ(found.gaps[n].fillings.size(), 19U);
    for (size_t best = 0; best < 19; ++best) {
      const Filling& one = found.gaps[n].fillings[best];
      EXPECT_NEAR(one.score, std::exp(logits.item({row, one.id})) / sum, 1e-6);
      EXPECT_LE(one.score, best > 0 ? found.gaps[n].fillings[best - 1].score : 1);
      EXPECT_EQ(one.token, tokenizer.token(one.id));
    }
  }
  EXPECT_EQ(text.substr(found.gaps[1].begin, found.gaps[1].end - found.gaps[1].begin), "[MASK]");
  EXPECT_EQ(found.gaps[1].fillings[0].text, "the [MASK] sat on " + found.gaps[1].fillings[0].token + " .");
  const std::vector<std::string> texts{"no gap", text, "a [MASK]"};
  const auto together = filler(texts);
  EXPECT_TRUE(together[0].gaps.empty());
  EXPECT_EQ(together[1].gaps[1].fillings[0].score, found.gaps[1].fillings[0].score);  // bits
  EXPECT_TRUE(refusal_of([&] { filler(text, 20); }).says("expected 1 to 19"));
  const std::string wrong = put("bert_token");
  EXPECT_TRUE(refusal_of([&] { Filler::load(wrong); }).says("use `multihead tag`"));
}

// start · end over the tokens of the context and the first token, as transformers' pipeline takes them.
TEST_F(EncoderHeads, AnAnswerIsTheBestSpanOfTheFormula) {
  const std::string folder = put("bert_question"), question = "who sings ?", context = "ada sat . The cat";
  const Encoded window = Tokenizer::load(folder).encode_pair(question, context);
  ASSERT_EQ(window.ids.size(), 11U);
  const ModelOutputs outputs = run(folder, window);
  const Tensor starts = outputs["start_logits"], ends = outputs["end_logits"];
  for (const int64_t longest : {1, 2, 15}) {
    double start_sum = 0, end_sum = 0, best = 0;
    for (const int64_t n : {0, 5, 6, 7, 8, 9})
      start_sum += std::exp(starts.item({n})), end_sum += std::exp(ends.item({n}));
    size_t first = 0, last = 0;
    for (int64_t a = 5; a <= 9; ++a)
      for (int64_t b = a; b <= std::min<int64_t>(9, a + longest - 1); ++b)
        if (const double p = std::exp(starts.item({a})) / start_sum * std::exp(ends.item({b})) / end_sum; p > best)
          best = p, first = static_cast<size_t>(a), last = static_cast<size_t>(b);
    const double none = std::exp(starts.item({0})) / start_sum * std::exp(ends.item({0})) / end_sum;
    const Answerer answerer = Answerer::load(folder);
    const Answer found = answerer(question, context, {.longest_answer = longest});
    EXPECT_NEAR(found.score, best, 1e-6);
    EXPECT_EQ(found.begin, window.offsets[first].begin);
    EXPECT_EQ(found.end, window.offsets[last].end);
    EXPECT_EQ(found.text, context.substr(found.begin, found.end - found.begin));
    const Answer maybe = answerer(question, context, {.longest_answer = longest, .no_answer = true});
    EXPECT_NEAR(maybe.score, std::max(best, none), 1e-6);
    EXPECT_EQ(maybe.text.empty(), none >= best);
  }
}

// BART's decoder reads question and context once more, behind its first token.
TEST_F(EncoderHeads, AnAnswererMayReadItsTextTwice) {
  const std::string folder = put("bart_question"), question = "who sings ?", context = "ada sat . The cat";
  const Encoded pair = Tokenizer::load(folder).encode_pair(question, context);
  std::vector<int32_t> again{2};
  again.insert(again.end(), pair.ids.begin(), pair.ids.end() - 1);
  const ModelOutputs outputs =
      Pretrained::load(folder).forward({.tokens = token_batch({pair.ids}), .decoder = token_batch({again})});
  double starts = 0, ends = 0, best = 0;
  for (const int64_t n : {0, 5, 6, 7, 8, 9}) {
    starts += std::exp(outputs["start_logits"].item({n}));
    ends += std::exp(outputs["end_logits"].item({n}));
  }
  for (int64_t a = 5; a <= 9; ++a)
    for (int64_t b = a; b <= 9; ++b)
      best = std::max(best, std::exp(outputs["start_logits"].item({a})) / starts *
                                std::exp(outputs["end_logits"].item({b})) / ends);
  EXPECT_NEAR(Answerer::load(folder)(question, context).score, best, 1e-6);
}

TEST_F(EncoderHeads, ALongContextIsReadInWindows) {
  const Answerer answerer = Answerer::load(put("bert_question"));
  std::string context;
  std::vector<Question> parts;
  for (int n = 0; n < 12; ++n) context += n % 3 == 0 ? "ada sings in " : n % 3 == 1 ? "rome . the " : "cat sat on ";
  const Answer whole = answerer("who ?", context);
  const Encoded all = Tokenizer::load(folder_ / "bert_question").encode_input(context, {.add_special = false});
  double best = -1;
  for (size_t begin = 0;; begin += 5) {  // 11 tokens a window, 5 of the question and the special ones; a stride of 5
    const size_t end = std::min(begin + 6, all.ids.size());
    if (begin >= end) break;
    const std::string part =
        context.substr(all.offsets[begin].begin, all.offsets[end - 1].end - all.offsets[begin].begin);
    best = std::max<double>(best, answerer("who ?", part, {.stride = 0}).score);
    parts.push_back({"who ?", part});
    if (end == all.ids.size()) break;
  }
  const Answer found = answerer("who ?", context, {.stride = 1});
  EXPECT_NEAR(found.score, best, 1e-6);
  EXPECT_GT(whole.score, 0);
  const auto together = answerer(parts);
  for (size_t n = 0; n < parts.size(); ++n)
    EXPECT_EQ(together[n].score, answerer(parts[n].question, parts[n].context).score);  // bits
  EXPECT_EQ(answerer("who ?", "").text, "");
  EXPECT_TRUE(
      refusal_of([&] { answerer("who who who who who who who who ?", "ada"); }).says("so that some of the text fits"));
  EXPECT_TRUE(refusal_of([&] { Answerer::load(put("bert_body")); }).says("use `multihead embed`"));
}

TEST_F(EncoderHeads, ClassifiersScoreAsTheirConfigSays) {
  const std::string folder = put("bert_sequence");
  const Tokenizer tokenizer = Tokenizer::load(folder);
  const Tensor logits = run(folder, tokenizer.encode_pair("the cat", "sat"))["logits"];
  auto config = nlohmann::json::parse(text_of(folder + "/config.json"));
  const auto scores = [&](const std::string& problem) {
    config["problem_type"] = problem;
    put_text(folder + "/config.json", config.dump());
    return Classifier::load(folder)("the cat\tsat").scores;
  };
  const auto soft = scores("single_label_classification"), each = scores("multi_label_classification"),
             plain = scores("regression");
  double sum = 0;
  for (int64_t n = 0; n < 3; ++n) sum += std::exp(logits.item({0, n}));
  for (int64_t n = 0; n < 3; ++n) {
    const double x = logits.item({0, n});
    EXPECT_NEAR(soft[static_cast<size_t>(n)], std::exp(x) / sum, 1e-6);
    EXPECT_NEAR(each[static_cast<size_t>(n)], 1 / (1 + std::exp(-x)), 1e-6);
    EXPECT_NEAR(plain[static_cast<size_t>(n)], x, 1e-5);
  }
  Safetensors file = read_safetensors(folder + "/model.safetensors");
  for (const char* name : {"classifier.weight", "classifier.bias"})
    file.tensors[name] = file.tensors[name].slice(0, 0, 1).clone();
  std::filesystem::remove(folder + "/model.safetensors");
  write_safetensors(folder + "/model.safetensors", file);
  config["id2label"] = {{"0", "relevance"}};
  config["label2id"] = {{"relevance", 0}};
  config.erase("problem_type");
  put_text(folder + "/config.json", config.dump());
  const auto one = [&] { return Classifier::load(folder)("the cat\tsat"); };
  EXPECT_EQ(one().label, "relevance");
  EXPECT_NEAR(one().score, 1 / (1 + std::exp(-logits.item({0, 0}))), 1e-6);
  config["sentence_transformers"] = {{"activation_fn", "torch.nn.modules.linear.Identity"}};
  put_text(folder + "/config.json", config.dump());
  EXPECT_NEAR(one().score, logits.item({0, 0}), 1e-5);
}

}  // namespace
}  // namespace mh
