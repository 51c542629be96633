// Every verb that loads a model refuses a damaged one and the tokenizer of another, in one sentence that names the
// file.
#include <algorithm>

#include "multihead/io/safetensors.h"
#include "tests/cli/run_program.h"
#include "tests/generate/tiny_translator.h"
#include "tests/harness/temporary_folder.h"

namespace mh::cli {
namespace {

class ModelBelongs : public Program {
 protected:
  void SetUp() override {
    Program::SetUp();
    if (IsSkipped()) return;
    test::write_translator(folder_.path());
    put_text(folder_ / "test.tsv", "the cat\tdie Katze\n");
    verbs_ = {{"translate", "translate " + in_quotes(folder_.path())},
              {"eval", "eval " + in_quotes(folder_.path()) + " " + in_quotes(folder_ / "test.tsv")},
              {"inspect", "inspect " + in_quotes(folder_.path())},
              {"average", "average " + in_quotes(model_) + " --tokenizer " + in_quotes(tokenizer_) + " --out " +
                              in_quotes(folder_ / "out")}};
  }
  // What all verbs say, each in one line that holds `part`.
  void expect_refused(const std::string& part) const {
    for (const auto& [verb, arguments] : verbs_) {
      const Ran ran = run(arguments, true, "echo the cat |");
      EXPECT_EQ(ran.code, 1) << verb;
      EXPECT_NE(ran.out.find(part), std::string::npos) << verb << ": " << ran.out;
      EXPECT_EQ(std::count(ran.out.begin(), ran.out.end(), '\n'), 1) << verb << ": " << ran.out;
    }
  }
  TemporaryFolder folder_;
  std::string model_ = folder_ / "model.safetensors", tokenizer_ = folder_ / "tokenizer.json";
  std::vector<std::pair<std::string, std::string>> verbs_;
};

TEST_F(ModelBelongs, AllIsWell) {
  for (const auto& [verb, arguments] : verbs_) EXPECT_EQ(run(arguments, true, "echo the cat |").code, 0) << verb;
}

TEST_F(ModelBelongs, AFlippedByteIsFound) {
  std::string text = text_of(model_);
  text[text.size() / 2] = static_cast<char>(text[text.size() / 2] ^ 1);
  put_text(model_, text);
  expect_refused("model.safetensors': the file is damaged");
}

TEST_F(ModelBelongs, TheTokenizerOfAnotherModelIsRefused) {
  const Tokenizer own = Tokenizer::load(tokenizer_);
  for (const int32_t tokens : {own.size(), own.size() - 1}) {
    train_bpe({"abcdefghijklmnopqrstuvwxyz abcdefghijklmnopqrstuvwxyz"}, {.vocabulary = tokens, .min_frequency = 1})
        .save(tokenizer_);
    ASSERT_EQ(Tokenizer::load(tokenizer_).size(), tokens);
    expect_refused("tokenizer.json' does not belong to '" + model_ + "'");
  }
}

TEST_F(ModelBelongs, AverageConvertsAFileAndNamesTheTokenizer) {
  const Ran ran = run(verbs_.back().second + " --dtype f16");
  EXPECT_EQ(ran.code, 0);
  const Safetensors before = read_safetensors(model_), after = read_safetensors(folder_ / "out");
  EXPECT_EQ(after.metadata, before.metadata);
  for (const auto& [name, tensor] : after.tensors) EXPECT_EQ(tensor.dtype(), DType::f16) << name;
  EXPECT_EQ(run(verbs_.back().second + " --dtype f8").code, 2);
}

TEST_F(ModelBelongs, InspectSaysThatAFileIsWhole) {
  EXPECT_NE(run("inspect " + in_quotes(model_)).out.find("safetensors, whole\n"), std::string::npos);
  EXPECT_EQ(run("inspect " MH_TEST_DATA "/io/golden/types.safetensors").out.find("whole"), std::string::npos);
}

}  // namespace
}  // namespace mh::cli
