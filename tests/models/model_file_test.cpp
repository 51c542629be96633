// A model that was saved computes what it computed; files that do not fit are refused.
#include "multihead/models/model_file.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "multihead/io/safetensors.h"
#include "tests/generate/tiny_model.h"
#include "tests/harness/refusal.h"
#include "tests/harness/temporary_folder.h"

namespace mh {
namespace {

Tensor logits_of(const Transformer& model) {
  Pass pass = Pass::inference();
  return model.logits(model.decode(token_batch({{1, 5, 6}}), model.encode(token_batch({{4, 3, 2}}), pass), pass));
}

TEST(ModelFile, ComputesWhatItComputed) {
  const TemporaryFolder folder;
  const Transformer model = test::tiny_model(11);
  const Tensor before = logits_of(model);
  for (const DType stored : {DType::f32, DType::bf16, DType::f16}) {
    save_transformer(folder / "model.safetensors", model, {.stored = stored});
    for (const auto& [name, tensor] : read_safetensors(folder / "model.safetensors").tensors)
      EXPECT_EQ(tensor.dtype(), stored) << name;
    const Tensor after = logits_of(load_transformer(folder / "model.safetensors"));
    ASSERT_EQ(after.shape(), before.shape());
    // A weight is off by at most 2^-9 of itself in bf16, 2^-12 in f16; the logits here are below 10.
    const double bound = stored == DType::f32 ? 0 : stored == DType::bf16 ? 0.3 : 0.04;
    for (int64_t n = 0; n < before.count(); ++n)
      EXPECT_NEAR(after.data<float>()[n], before.data<float>()[n], bound) << name(stored);
  }
}

TEST(ModelFile, RefusesWhatDoesNotFit) {
  const TemporaryFolder folder;
  const std::string path = folder / "model.safetensors";
  save_transformer(path, test::tiny_model(11));
  const Safetensors whole = read_safetensors(path);
  const auto refusal = [&](const auto& change) {
    Safetensors file = whole;
    change(file);
    write_safetensors(folder / "changed.safetensors", file);
    return refusal_of([&] { load_transformer(folder / "changed.safetensors"); });
  };
  EXPECT_TRUE(refusal([](Safetensors& file) { file.metadata.erase("config"); }).says("has no 'config'"));
  EXPECT_TRUE(refusal([](Safetensors& file) { file.metadata["config"] = std::string("{"); }).says("no JSON object"));
  EXPECT_TRUE(refusal([](Safetensors& file) { file.tensors.erase("decoder.norm.bias"); }).says("decoder.norm.bias"));
  EXPECT_TRUE(refusal([](Safetensors& file) { file.tensors["decoder.norm.bias"] = zeros({23}); }).says("[24]"));
  EXPECT_TRUE(refusal([](Safetensors& file) { file.tensors["more"] = zeros({2}); }).says("'more'"));
  EXPECT_EQ(refusal_of([&] { load_transformer(folder / "none.safetensors"); }).kind, ErrorKind::io);
}

// Tokenizers of the same number of tokens, learned from different text.
Tokenizer learned(const std::string& word) {
  return train_bpe({word, word}, {.vocabulary = 262, .specials = {"<pad>", "<s>", "</s>", "<unk>"}});
}

TEST(ModelFile, NamesItsTokenizerByTheHashOfItsFile) {
  // By Python's xxhash: xxh3_128_hexdigest of the file's bytes.
  const std::string golden = MH_TEST_DATA "/text/golden/plain.json";
  EXPECT_EQ(tokenizer_hash(Tokenizer::load(golden)), "3eb8cfceeecafdc5e4ee1643ed010e60");
  std::string laid_out_otherwise = text_of(golden);
  std::erase(laid_out_otherwise, '\n');
  EXPECT_EQ(tokenizer_hash(Tokenizer::parse(laid_out_otherwise, "x")), "3eb8cfceeecafdc5e4ee1643ed010e60");

  const TemporaryFolder folder;
  save_transformer(folder / "model", test::tiny_model(262), {.tokenizer = learned("ab")});
  EXPECT_EQ(read_safetensors(folder / "model").metadata.at(kTokenizerKey), tokenizer_hash(learned("ab")));
  EXPECT_TRUE(refusal_of([&] {
                save_transformer(folder / "model", test::tiny_model(263), {.tokenizer = learned("ab")});
              }).says("the tokenizer has 262 tokens; expected the 263"));
}

class ModelFolderTest : public testing::Test {
 protected:
  ModelFolderTest() {
    learned("ab").save(tokenizer_);
    save_transformer(model_, test::tiny_model(262), {.tokenizer = learned("ab")});
  }
  Refusal refusal() const {
    return refusal_of([&] { load_model_folder(folder_.path()); });
  }
  // As another program would write it: without the names of the tokenizer and the hash of the file.
  void write_as_others_do() const {
    Safetensors file = read_safetensors(model_);
    file.metadata.erase(kTokenizerKey);
    write_safetensors(model_, file);
    std::string text = text_of(model_);
    text.replace(text.find("multihead.xxh3"), 14, "someone.xxh300");
    std::filesystem::remove(model_);
    put_text(model_, text);
  }
  TemporaryFolder folder_;
  std::string model_ = folder_ / "model.safetensors", tokenizer_ = folder_ / "tokenizer.json";
};

TEST(ModelFolder, TheShippedModelCarriesItsHashAndNamesItsTokenizer) {
  const std::string folder = MH_TEST_DATA "/../models/en-de";
  EXPECT_NO_THROW(load_model_folder(folder));
  const Safetensors file = read_safetensors(folder + "/model.safetensors");
  EXPECT_TRUE(file.hashed);
  EXPECT_EQ(file.metadata.count(kTokenizerKey), 1u);
}

TEST_F(ModelFolderTest, LoadsBoth) {
  const ModelFolder loaded = load_model_folder(folder_.path());
  EXPECT_EQ(loaded.tokenizer.json(), learned("ab").json());
  EXPECT_EQ(loaded.model.config().vocabulary, 262);
}

TEST_F(ModelFolderTest, RefusesTheTokenizerOfAnotherModelAndNamesBothFiles) {
  ASSERT_EQ(learned("xy").size(), learned("ab").size());
  learned("xy").save(tokenizer_);
  EXPECT_EQ(refusal().kind, ErrorKind::invalid_argument);
  EXPECT_EQ(refusal().sentence, "'" + tokenizer_ + "' does not belong to '" + model_ + "': its hash is " +
                                    tokenizer_hash(learned("xy")) + "; expected '" + tokenizer_hash(learned("ab")) +
                                    "', the tokenizer that the model was trained with");
}

TEST_F(ModelFolderTest, RefusesAnotherNumberOfTokensAlways) {
  for (const char* kind : {"ours", "of another program"}) {
    for (const int32_t tokens : {261, 263}) {
      train_bpe({"abcd", "abcd"}, {.vocabulary = tokens}).save(tokenizer_);
      EXPECT_EQ(refusal().kind, ErrorKind::invalid_argument) << kind;
      EXPECT_EQ(refusal().sentence, "'" + tokenizer_ + "' does not belong to '" + model_ + "': it has " +
                                        std::to_string(tokens) + " tokens; expected the 262 of the model's vocabulary")
          << kind;
    }
    write_as_others_do();
  }
}

TEST_F(ModelFolderTest, AcceptsFoldersThatNameNoTokenizer) {
  write_as_others_do();
  ASSERT_FALSE(read_safetensors(model_).hashed);
  learned("xy").save(tokenizer_);
  EXPECT_EQ(load_model_folder(folder_.path()).tokenizer.json(), learned("xy").json());
}

TEST_F(ModelFolderTest, RefusesAModelWithAFlippedByte) {
  const std::string whole = text_of(model_);
  for (size_t at = 0; at < whole.size(); at += 997) {
    std::string altered = whole;
    altered[at] = static_cast<char>(altered[at] ^ 4);
    put_text(model_, altered);
    EXPECT_EQ(refusal().kind, ErrorKind::io) << at;
    EXPECT_TRUE(refusal().says("model.safetensors")) << refusal().sentence;
  }
  put_text(model_, whole);
  EXPECT_EQ(refusal().sentence, "no refusal");
}

}  // namespace
}  // namespace mh
