// `multihead embed`, `search`, `fill` and `answer`: what comes out for every line that goes in.
#include <gtest/gtest.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "multihead/io/array_file.h"
#include "multihead/io/safetensors.h"
#include "multihead/tasks/verbs/answerer.h"
#include "multihead/tasks/verbs/embedder.h"
#include "multihead/tasks/verbs/filler.h"
#include "multihead/tasks/verbs/tagger.h"
#include "multihead/tasks/verbs/zero_shot.h"
#include "tests/cli/run_program.h"
#include "tests/models/encoder_folder.h"

namespace mh::cli {
namespace {

class EncoderVerbs : public Program {
 protected:
  void SetUp() override {
    Program::SetUp();
    if (IsSkipped()) return;
    for (const char* name : {"bert_body", "bert_masked", "bert_question", "bert_sequence"})
      test::put_encoder(folder_ / name, name);
  }
  Ran piped(const std::string& input, const std::string& verb, const std::string& flags, bool both = false) const {
    put_text(folder_ / "in.txt", input);
    return run(verb + " '" + (folder_ / "bert_") + flags + " < " + in_quotes(folder_ / "in.txt"), both);
  }
  TemporaryFolder folder_;
};

TEST_F(EncoderVerbs, EmbedWritesAnArrayWithARowForEachLine) {
  const std::string out = folder_ / "out.npy";
  const Ran ran = piped("the cat\n\xFF\na dog\n", "embed", "body' -o " + in_quotes(out), true);
  EXPECT_EQ(ran.code, 0) << ran.out;
  EXPECT_NE(ran.out.find("has no modules.json; the mean"), std::string::npos) << ran.out;
  EXPECT_NE(ran.out.find("skipped line 2: not UTF-8"), std::string::npos) << ran.out;
  const Tensor vectors = read_npy(out);
  const Embedder embedder = Embedder::load(folder_ / "bert_body");
  ASSERT_EQ(vectors.shape(), (Shape{3, 8}));
  for (int64_t c = 0; c < 8; ++c) {
    EXPECT_EQ(vectors.item({0, c}), embedder("the cat").item({c}));
    EXPECT_EQ(vectors.item({1, c}), 0);
    EXPECT_EQ(vectors.item({2, c}), embedder("a dog").item({c}));
  }
  EXPECT_EQ(piped("the cat\n\xFF\na dog\n", "embed", "body'").out, text_of(out));  // stdout
  EXPECT_TRUE(piped("", "embed", "body'").out.find("(0, 8,)") != std::string::npos);
  const Tensor vector = embedder("the cat");
  const std::vector<float> numbers(vector.data<float>(), vector.data<float>() + vector.count());
  EXPECT_EQ(piped("the cat\n", "embed", "body' --tsv").out, fmt::format("{}\n", fmt::join(numbers, "\t")));
  EXPECT_NE(piped("", "embed", "body' --prompt-name query", true).out.find("has no prompt 'query'"), std::string::npos);
}

TEST_F(EncoderVerbs, SearchFindsTheNearestLinesAndKeepsItsIndex) {
  const std::string docs = folder_ / "docs.txt", flags = "body' " + in_quotes(docs) + " -k 2";
  put_text(docs, "the dog sat on the mat\n\nwho sings ?\nthe cat sat\n\xFF\n");
  const Ran made = piped("", "search", flags + " -q 'the cat sat'", true);
  EXPECT_EQ(made.code, 0) << made.out;
  EXPECT_NE(made.out.find("making the index of 3 lines"), std::string::npos) << made.out;
  EXPECT_NE(made.out.find("1.0000\t4\tthe cat sat\n"), std::string::npos) << made.out;
  const Ran kept = piped("", "search", flags + " -q 'the cat sat' -q 'who sings ?'", true);
  EXPECT_EQ(kept.out.find("making the index"), std::string::npos) << kept.out;
  EXPECT_NE(kept.out.find("\n\n1.0000\t3\twho sings ?\n"), std::string::npos) << kept.out;
  EXPECT_TRUE(piped("the cat sat\n", "search", flags).out.starts_with("1.0000\t4\t"));
  EXPECT_EQ(nlohmann::json::parse(piped("", "search", flags + " -q 'the cat sat' --json").out)[0]["line"], 4);
  put_text(docs, "the cat sat\n");
  EXPECT_NE(piped("", "search", flags + " -q 'a'", true).out.find("making the index of 1 lines"), std::string::npos);
  write_npy(docs + ".npy", zeros({1}));
  const Ran foreign = piped("", "search", flags + " -q 'a'", true);
  EXPECT_EQ(foreign.code, 1);
  EXPECT_NE(foreign.out.find("is not an index"), std::string::npos) << foreign.out;
}

TEST_F(EncoderVerbs, FillPrintsTheLikeliestTokensOfEachGap) {
  const Filling best = Filler::load(folder_ / "bert_masked")("the [MASK] sat").gaps[0].fillings[0];
  const Ran ran = piped("the [MASK] sat\nno gap\n[MASK] [MASK]\n", "fill", "masked'", true);
  EXPECT_EQ(ran.code, 0);
  EXPECT_NE(ran.out.find("skipped line 2: no [MASK] is in it"), std::string::npos) << ran.out;
  EXPECT_NE(ran.out.find(fmt::format("1\t{}\t{:.4f}\t{}\n", best.token, best.score, best.text)), std::string::npos)
      << ran.out;
  EXPECT_EQ(std::count(ran.out.begin(), ran.out.end(), '\n'), 5 + 1 + 1 + 1 + 10 + 1) << ran.out;
  const auto json = nlohmann::json::parse(piped("[MASK] [MASK]", "fill", "masked' --json -k 3").out);
  EXPECT_EQ(json.size(), 2U);
  EXPECT_EQ(json[1].size(), 3U);
}

TEST_F(EncoderVerbs, AnswerReadsATextOrPairs) {
  const Answer found = Answerer::load(folder_ / "bert_question")("who sings ?", "ada sat . rome");
  const std::string shown = fmt::format("{}\t{:.4f}\t{}\t{}\n", found.text, found.score, found.begin, found.end);
  EXPECT_EQ(piped("who sings ?\tada sat . rome\n", "answer", "question'").out, shown);
  EXPECT_EQ(piped("ada sat . rome\n", "answer", "question' -q 'who sings ?'").out, shown);
  EXPECT_NE(piped("nothing\n", "answer", "question'", true).out.find("skipped line 1: no tab"), std::string::npos);
  EXPECT_EQ(
      nlohmann::json::parse(piped("ada sat . rome\n", "answer", "question' --json -q 'who sings ?'").out)["answer"],
      found.text);
}

TEST_F(EncoderVerbs, TagSaysHowTokensBecomeEntities) {
  const std::string folder = folder_ / "bert_token", text = "the cat sat on the mat in rome . ada sings . who sings";
  test::put_encoder(folder, "bert_token");
  const Tagger tagger = Tagger::load(folder);
  std::string shown;
  for (const TaggedSpan& each : tagger(text, {.aggregation = Aggregation::none, .stride = 2}).entities)
    shown += fmt::format("{}\t{}\t{}\t{:.4f}\t{}\n", each.begin, each.end, each.label, each.score,
                         text.substr(each.begin, each.end - each.begin));
  const Ran ran = piped(text + "\n", "tag", "token' --aggregation none --stride 2 --threads 2", true);
  EXPECT_EQ(ran.out, shown + "\n");  // nothing is cut, though the model reads 11 tokens
  EXPECT_EQ(piped("a cat\n", "tag", "token' --words").out,
            fmt::format("a\t{}\ncat\t{}\n\n", tagger("a cat").tags[0], tagger("a cat").tags[1]));
  EXPECT_EQ(piped("a\n", "tag", "token' --aggregation best", true).code, 2);
}

TEST_F(EncoderVerbs, LabelsOfOnesOwnNeedAModelOfWhatFollows) {
  auto config = nlohmann::json::parse(text_of(folder_ / "bert_sequence/config.json"));
  EXPECT_NE(
      piped("", "classify", "sequence' --labels a,b", true).out.find("no label of the model begins with \"entail\""),
      std::string::npos);
  config["id2label"] = {{"0", "entailment"}, {"1", "neutral"}, {"2", "contradiction"}};
  put_text(folder_ / "bert_sequence/config.json", config.dump());
  const ZeroShotClassifier classifier = ZeroShotClassifier::load(folder_ / "bert_sequence");
  const std::vector<std::string> labels{"cat", "dog"};
  const Classification one = classifier("ada sings", labels, {.hypothesis = "the {} sat"}),
                       each = classifier("ada sings", labels, {.hypothesis = "the {} sat", .multi = true});
  const std::string flags = "sequence' --labels ' cat,dog' --template 'the {} sat'";
  EXPECT_EQ(piped("ada sings\n\xFF\n", "classify", flags).out, fmt::format("{}\t{:.4f}\n\n", one.label, one.score));
  const auto json = nlohmann::json::parse(piped("ada sings\n", "classify", flags + " --multi --all --json").out);
  EXPECT_NEAR(json["scores"]["dog"], each.scores[1], 1e-6);
  EXPECT_NE(piped("", "classify", "sequence' --labels ' '", true).out.find("there is no label"), std::string::npos);
  EXPECT_EQ(piped("", "classify", "sequence' --multi").code, 2);
}

TEST_F(EncoderVerbs, TensorsThatNoPartReadsAreSaid) {
  Safetensors file = read_safetensors(folder_ / "bert_sequence/model.safetensors");
  file.tensors["adapter.weight"] = zeros({2});
  std::filesystem::remove(folder_ / "bert_sequence/model.safetensors");
  write_safetensors(folder_ / "bert_sequence/model.safetensors", file);
  const Ran ran = piped("a cat\nthe dog\n", "classify", "sequence'", true);
  EXPECT_NE(ran.out.find("holds a tensor that its model does not read: 'adapter.weight'\n"), std::string::npos)
      << ran.out;
  EXPECT_EQ(std::count(ran.out.begin(), ran.out.end(), '\n'), 3);
  put_text(folder_ / "bert_sequence/tokenizer_config.json", R"({"model_max_length": 4})");
  EXPECT_NE(piped("a cat\nthe dog sat\n", "classify", "sequence'", true).out.find("line 2 is too long for the model"),
            std::string::npos);
}

TEST_F(EncoderVerbs, AWrongFolderNamesItsVerb) {
  test::put_encoder(folder_ / "bert_choice", "bert_choice");
  EXPECT_NE(piped("", "classify", "choice'", true)
                .out.find("is a bert chooser among several texts; expected a text classifier: no verb runs it"),
            std::string::npos);
  EXPECT_NE(piped("", "tag", "choice'", true).out.find("no verb runs it"), std::string::npos);
  EXPECT_NE(piped("", "fill", "question'", true).out.find("use `multihead answer`"), std::string::npos);
  EXPECT_NE(piped("", "answer", "sequence'", true).out.find("use `multihead classify`"), std::string::npos);
  EXPECT_NE(piped("", "classify", "masked'", true).out.find("use `multihead fill`"), std::string::npos);
  EXPECT_NE(piped("", "tag", "body'", true).out.find("use `multihead embed`"), std::string::npos);
  EXPECT_EQ(piped("the cat\tsat\n", "classify", "sequence' --all").code, 0);
}

}  // namespace
}  // namespace mh::cli
