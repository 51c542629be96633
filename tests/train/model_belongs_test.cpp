// What runs and averages write says which tokenizer it belongs to, and a run does not go on with another.
#include <gtest/gtest.h>

#include <cstring>

#include "multihead/io/checkpoint.h"
#include "multihead/models/model_file.h"
#include "multihead/train/average.h"
#include "multihead/train/trainer.h"
#include "tests/generate/tiny_model.h"
#include "tests/harness/refusal.h"
#include "tests/harness/temporary_folder.h"

namespace mh {
namespace {

class ModelBelongs : public testing::Test {
 protected:
  ModelBelongs() {
    std::string pairs;
    for (int n = 0; n < 40; ++n)
      pairs += "one two " + std::to_string(n % 7) + "\teins zwei " + std::to_string(n % 7) + "\n";
    put_text(folder_ / "pairs.tsv", pairs);
  }
  TrainRequest request(int64_t steps, bool resume = false) const {
    TrainConfig c;
    c.model = {.vocabulary = 0, .width = 8, .heads = 2, .feed_forward = 8, .encoder_layers = 1, .decoder_layers = 1};
    c.tokenizer.vocabulary = 270;
    c.data.train = folder_ / "pairs.tsv";
    c.data.valid = folder_ / "pairs.tsv";
    c.data.tokens_per_batch = 64;
    c.train.output = run_;
    c.train.steps = steps;
    c.train.save_every = 1;
    return {.config = c, .resume = resume};
  }
  Tokenizer tokenizer() const { return Tokenizer::load(run_ + "/tokenizer.json"); }
  Safetensors written(const Safetensors& file) const {
    write_safetensors(folder_ / "out", file);
    return read_safetensors(folder_ / "out");
  }
  TemporaryFolder folder_;
  std::string run_ = folder_ / "run";
};

// As many tokens as `like`, from other text.
Tokenizer another(const Tokenizer& like) {
  return train_bpe({"abcdefghijklmnopqrst", "abcdefghijklmnopqrst"}, {.vocabulary = like.size()});
}

TEST_F(ModelBelongs, ARunsModelNamesItsTokenizer) {
  train(request(2));
  EXPECT_NO_THROW(load_model_folder(run_));
  const Safetensors model = read_safetensors(run_ + "/model.safetensors");
  EXPECT_TRUE(model.hashed);
  EXPECT_EQ(model.metadata.at(kTokenizerKey), tokenizer_hash(tokenizer()));

  // The mean of its checkpoints names it too.
  const Safetensors mean = written(average_weights(list_checkpoints(run_ + "/checkpoints")));
  EXPECT_TRUE(mean.hashed);
  EXPECT_EQ(mean.metadata, model.metadata);
}

TEST_F(ModelBelongs, ARunDoesNotGoOnWithAnotherTokenizer) {
  train(request(1));
  const Tokenizer own = tokenizer(), other = another(own);
  ASSERT_EQ(own.size(), other.size());
  other.save(run_ + "/tokenizer.json");
  const Refusal refusal = refusal_of([&] { train(request(2, true)); });
  EXPECT_EQ(refusal.kind, ErrorKind::invalid_argument);
  EXPECT_TRUE(refusal.says("/tokenizer.json is not the tokenizer that the run began with")) << refusal.sentence;
  own.save(run_ + "/tokenizer.json");
  EXPECT_EQ(train(request(2, true)).steps, 2);
}

TEST_F(ModelBelongs, ARunDoesNotStartFromAModelWithAnotherTokenizer) {
  train(request(1));
  another(tokenizer()).save(run_ + "/tokenizer.json");
  TrainRequest next = request(1);
  next.config.start.from = run_;
  next.config.train.output = folder_ / "next";
  EXPECT_TRUE(refusal_of([&] { train(next); }).says("tokenizer.json' does not belong to '" + run_));
}

class AveragedFiles : public testing::Test {
 protected:
  void save(const std::string& name, const std::string& word, bool names_it = true) const {
    save_transformer(folder_ / name, test::tiny_model(262), {.tokenizer = names_it ? learned(word) : Tokenizer()});
  }
  static Tokenizer learned(const std::string& word) { return train_bpe({word, word}, {.vocabulary = 262}); }
  std::string tokenizer_of(const std::vector<std::string>& names, const AverageOptions& options = {}) const {
    std::vector<std::string> paths;
    for (const std::string& name : names) paths.push_back(folder_ / name);
    const Safetensors mean = average_weights(paths, options);
    const auto found = mean.metadata.find(kTokenizerKey);
    return found == mean.metadata.end() ? "none" : found->second;
  }
  TemporaryFolder folder_;
};

TEST_F(AveragedFiles, NameTheTokenizerThatAnyNames) {
  save("ab", "ab");
  save("xy", "xy");
  save("unnamed", "", false);
  const std::string ab = tokenizer_hash(learned("ab"));
  EXPECT_EQ(tokenizer_of({"ab", "unnamed"}), ab);
  EXPECT_EQ(tokenizer_of({"unnamed", "ab"}), ab);
  EXPECT_EQ(tokenizer_of({"unnamed"}), "none");
  EXPECT_EQ(tokenizer_of({"unnamed"}, {.tokenizer = TokenizerFile{"t", learned("ab")}}), ab);
  const Refusal two = refusal_of([&] { tokenizer_of({"ab", "unnamed", "xy"}); });
  EXPECT_EQ(two.kind, ErrorKind::invalid_argument);
  EXPECT_EQ(two.sentence, "average: '" + (folder_ / "ab") + "' and '" + (folder_ / "xy") +
                              "' were trained with different tokenizers; expected models with the same one");
  const Refusal given = refusal_of([&] { tokenizer_of({"ab"}, {.tokenizer = TokenizerFile{"t", learned("xy")}}); });
  EXPECT_TRUE(given.says("'t' does not belong to '" + (folder_ / "ab") + "'")) << given.sentence;
}

TEST_F(AveragedFiles, AreStoredAsAskedFor) {
  write_safetensors(folder_ / "file", {.tensors = {{"w", tensor<float>({1, 1.0009765625F, 1.0001F}, {3})},
                                                   {"ids", full({2}, 7, DType::i32)}},
                                       .metadata = {}});
  const Safetensors half = average_weights({folder_ / "file"}, {.stored = DType::f16});
  EXPECT_EQ(half.tensors.at("w").dtype(), DType::f16);
  EXPECT_EQ(half.tensors.at("ids").dtype(), DType::i32);
  EXPECT_EQ(half.tensors.at("w").item({1}), 1.0009765625);  // 1 + 2^-10, the step of f16 at 1
  EXPECT_EQ(half.tensors.at("w").item({2}), 1);

  write_safetensors(folder_ / "large", {.tensors = {{"w", tensor<float>({65504, 65520}, {2})}}, .metadata = {}});
  EXPECT_TRUE(refusal_of([&] {
                average_weights({folder_ / "large"}, {.stored = DType::f16});
              }).says("tensor 'w' holds 65520, which f16 cannot hold"));
  EXPECT_TRUE(refusal_of([&] { average_weights({folder_ / "large"}, {.stored = DType::i8}); }).says("stored as i8"));
}

TEST_F(AveragedFiles, OneAloneKeepsItsBits) {
  save_transformer(folder_ / "half", test::tiny_model(262), {.stored = DType::f16});
  const Safetensors before = read_safetensors(folder_ / "half"), after = average_weights({folder_ / "half"});
  ASSERT_EQ(after.tensors.size(), before.tensors.size());
  for (const auto& [name, tensor] : before.tensors)
    EXPECT_EQ(
        0, std::memcmp(tensor.view().data, after.tensors.at(name).view().data, static_cast<size_t>(tensor.count()) * 2))
        << name;
}

}  // namespace
}  // namespace mh
