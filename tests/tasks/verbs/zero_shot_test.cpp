// Zero-shot classification against its formula over the logits of a tiny model of what follows from a text.
#include "multihead/tasks/verbs/zero_shot.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "multihead/io/safetensors.h"
#include "multihead/models/pretrained/pretrained.h"
#include "multihead/text/tokenizer.h"
#include "tests/harness/refusal.h"
#include "tests/models/encoder_folder.h"

namespace mh {
namespace {

using Strings = std::vector<std::string>;

class ZeroShot : public testing::Test {
 protected:
  // `model` with these labels.
  std::string put(const std::string& model, const Strings& labels) const {
    const std::string folder = folder_ / model;
    test::put_encoder(folder, model);
    auto config = nlohmann::json::parse(text_of(folder + "/config.json"));
    config["id2label"] = config["label2id"] = nlohmann::json::object();
    for (size_t n = 0; n < labels.size(); ++n) config["id2label"][std::to_string(n)] = labels[n];
    put_text(folder + "/config.json", config.dump());
    return folder;
  }
  static std::vector<double> logits(const std::string& folder, const std::string& text, const std::string& hypothesis) {
    const Encoded pair = Tokenizer::load(folder).encode_pair(text, hypothesis);
    const Tensor x = Pretrained::load(folder).forward(
        {.tokens = token_batch({pair.ids}),
         .types = tensor<int32_t>(pair.types, {static_cast<int64_t>(pair.types.size())})})["logits"];
    std::vector<double> out;
    for (int64_t n = 0; n < x.size(1); ++n) out.push_back(x.item({0, n}));
    return out;
  }
  TemporaryFolder folder_;
};

TEST_F(ZeroShot, LabelsShareTheProbabilityByTheirEntailments) {
  const std::string folder = put("bert_sequence", {"Contradiction", "neutral", "ENTAILMENT"});
  const ZeroShotClassifier classifier = ZeroShotClassifier::load(folder);
  const Strings labels{"cat", "dog", "rome"}, texts{"the cat sat", "who sings", ""};
  const ZeroShotOptions options{.hypothesis = "the {} sat"};
  const std::vector<Classification> said = classifier(texts, labels, options);
  ZeroShotOptions several = options;
  several.multi = true;
  for (size_t text = 0; text < texts.size(); ++text) {
    const Classification each = classifier(texts[text], labels, several);
    double sum = 0;
    std::vector<std::vector<double>> x;
    for (const std::string& label : labels) x.push_back(logits(folder, texts[text], "the " + label + " sat"));
    for (const auto& one : x) sum += std::exp(one[2]);
    size_t best = 0;
    for (size_t n = 0; n < 3; ++n) {
      EXPECT_NEAR(said[text].scores[n], std::exp(x[n][2]) / sum, 1e-6);
      EXPECT_NEAR(each.scores[n], std::exp(x[n][2]) / (std::exp(x[n][2]) + std::exp(x[n][0])), 1e-6);
      if (x[n][2] > x[best][2]) best = n;
    }
    EXPECT_EQ(said[text].label, labels[best]);
    EXPECT_EQ(said[text].score, said[text].scores[best]);
    EXPECT_EQ(classifier(texts[text], labels, options).scores, said[text].scores);  // bits
    EXPECT_FALSE(said[text].cut);
  }
  const Strings one{"dog"};  // alone it is judged against its contradiction
  const std::vector<double> x = logits(folder, "a cat", "the dog sat");
  EXPECT_NEAR(classifier("a cat", one, options).score, 1 / (1 + std::exp(x[0] - x[2])), 1e-6);
}

TEST_F(ZeroShot, ALongTextIsCutAndItsHypothesisStays) {
  const std::string folder = put("bert_sequence", {"entailment", "neutral", "contradiction"});
  const Strings labels{"cat", "dog"};
  const ZeroShotOptions options{.hypothesis = "the {}"};
  const auto cut = ZeroShotClassifier::load(folder)("a cat sat on the mat in rome . a dog", labels, options);
  const auto kept = ZeroShotClassifier::load(folder)("a cat sat on the mat", labels, options);
  EXPECT_TRUE(cut.cut);  // 11 tokens: 3 special ones, 2 of the hypothesis, 6 of the text
  EXPECT_FALSE(kept.cut);
  EXPECT_EQ(cut.scores, kept.scores);
}

TEST_F(ZeroShot, OfTwoLabelsTheOtherIsTheContradiction) {
  const std::string folder = put("bert_sequence", {"entailment", "neutral", "other"});
  const Strings labels{"cat", "dog"};
  const ZeroShotOptions multi{.hypothesis = "a {}", .multi = true};
  EXPECT_TRUE(refusal_of([&] { ZeroShotClassifier::load(folder)("a", labels, multi); }).says("begins with \"contra\""));
  EXPECT_EQ(ZeroShotClassifier::load(folder)("a", labels, {.hypothesis = "a {}"}).scores.size(), 2U);
  Safetensors file = read_safetensors(folder + "/model.safetensors");
  for (const char* name : {"classifier.weight", "classifier.bias"})
    file.tensors[name] = file.tensors[name].slice(0, 0, 2).clone();
  std::filesystem::remove(folder + "/model.safetensors");
  write_safetensors(folder + "/model.safetensors", file);
  auto config = nlohmann::json::parse(text_of(folder + "/config.json"));
  config["id2label"] = {{"0", "not_entailment"}, {"1", "entailment"}};
  put_text(folder + "/config.json", config.dump());
  const std::vector<double> x = logits(folder, "a", "a cat");
  EXPECT_NEAR(ZeroShotClassifier::load(folder)("a", labels, multi).scores[0], 1 / (1 + std::exp(x[0] - x[1])), 1e-6);
}

TEST_F(ZeroShot, WhatIsMissingIsSaid) {
  EXPECT_TRUE(refusal_of([&] {
                ZeroShotClassifier::load(put("bert_sequence", {"good", "bad", "so"}));
              }).says("no label of the model begins with \"entail\", the first is 'good'"));
  EXPECT_TRUE(refusal_of([&] {
                ZeroShotClassifier::load(put("bert_token", {"a", "b", "c", "d", "e"}));
              }).says("use `multihead tag`"));
  const ZeroShotClassifier classifier =
      ZeroShotClassifier::load(put("bert_sequence", {"entailment", "neutral", "contradiction"}));
  const Strings labels{"cat", "dog"}, empty{"cat", ""};
  const auto refused = [&](std::span<const std::string> of, const std::string& hypothesis,
                           const std::string& text = "a") {
    return refusal_of([&] { classifier(text, of, {.hypothesis = hypothesis}); });
  };
  EXPECT_TRUE(refused(labels, "nothing").says("expected one {} in it"));
  EXPECT_TRUE(refused(labels, "{} {}").says("expected one {} in it"));
  EXPECT_TRUE(refused(empty, "a {}").says("label 2 is empty"));
  EXPECT_TRUE(refused({}, "a {}").says("there is no label"));
  EXPECT_TRUE(refused(labels, "a {}", "\xFF").says("text 1 is not UTF-8"));
  EXPECT_TRUE(refused(labels, "a a a a a a a a {}").says("has 12 tokens; expected fewer than 11"));
}

}  // namespace
}  // namespace mh
