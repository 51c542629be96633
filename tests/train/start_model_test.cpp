// Going on from a model: its weights and its tokenizer are taken, and another model's are refused by name.
#include "multihead/train/start_model.h"

#include <cmath>
#include <filesystem>

#include "multihead/io/safetensors.h"
#include "multihead/train/trainer.h"
#include "tests/harness/refusal.h"
#include "tests/train/small_run.h"

namespace mh {
namespace {

class StartModels : public SmallRun {
 protected:
  StartModels() {
    TrainConfig c = config("first", 6);
    c.train.ema = 0;
    train({.config = c});
  }
  std::string first() const { return folder_ / "first"; }

  // One step so small that it changes no f32 weight but those near 0.
  TrainConfig next(const std::string& output) const {
    TrainConfig c = config(output, 1);
    c.start.from = first();
    c.optimizer.learning_rate = 1e-12;
    c.train.ema = 0;
    return c;
  }
  std::string refused(const TrainConfig& c) const {
    const Refusal refusal = refusal_of([&] { train({.config = c}); });
    EXPECT_FALSE(std::filesystem::exists(c.train.output + "/checkpoints")) << refusal.sentence;
    return refusal.sentence;
  }
};

// The largest difference of any weight.
double distance(const std::string& a, const std::string& b) {
  const Safetensors x = read_safetensors(a + "/model.safetensors"), y = read_safetensors(b + "/model.safetensors");
  EXPECT_EQ(x.tensors.size(), y.tensors.size());
  double most = 0;
  for (const auto& [name, tensor] : x.tensors) {
    const Tensor other = y.tensors.at(name);
    for (int64_t i = 0; i < tensor.count(); ++i)
      most = std::max(most, std::abs(double{tensor.data<float>()[i]} - other.data<float>()[i]));
  }
  return most;
}

TEST_F(StartModels, TrainingStartsFromTheWeightsAndTheTokenizer) {
  write_pairs(folder_ / "train.tsv", 7, 150);  // a tokenizer learned from these is another one
  train({.config = next("second")});
  EXPECT_LT(distance(first(), folder_ / "second"), 1e-9);
  EXPECT_EQ(text_of(folder_ / "second/tokenizer.json"), text_of(first() + "/tokenizer.json"));

  TrainConfig fresh = next("fresh");
  fresh.start.from = "";
  fresh.tokenizer.path = first() + "/tokenizer.json";
  train({.config = fresh});
  EXPECT_GT(distance(first(), folder_ / "fresh"), 1e-3);
}

TEST_F(StartModels, TheModelMayBeNamedByItsFile) {
  TrainConfig c = next("second");
  c.start.from += "/model.safetensors";
  c.tokenizer.path = first() + "/tokenizer.json";
  c.model.dropout = 0.5F;
  c.model.max_length = 40;
  train({.config = c});
  EXPECT_LT(distance(first(), folder_ / "second"), 1e-9);
}

TEST_F(StartModels, TheWeightsAreNotReadAgainWhereTheRunGoesOn) {
  train({.config = next("second")});
  std::filesystem::remove_all(first());
  TrainConfig c = next("second");
  c.train.steps = 2;
  EXPECT_EQ(train({.config = c, .resume = true}).steps, 2);
}

TEST_F(StartModels, AnotherModelIsRefusedByItsKeys) {
  TrainConfig c = next("second");
  c.model.width = 32;
  c.model.norm = NormPlace::after;
  EXPECT_EQ(refused(c), "config: model.from names another model, " + first() +
                            ": model.width is 32, there it is 16; model.norm is \"post\", there it is \"pre\"; "
                            "expected the keys of its config.toml");
  c = next("second");
  c.model.vocabulary = 299;
  EXPECT_NE(refused(c).find("model.vocabulary is 299, there it is "), std::string::npos) << refused(c);
  c = next("second");
  c.model.positions = ModelPositions::learned;
  EXPECT_NE(refused(c).find("model.positions is \"learned\""), std::string::npos) << refused(c);
}

TEST_F(StartModels, AnotherTokenizerIsRefused) {
  const std::string other = folder_ / "other.json";
  put_text(other, train_bpe({"zwei drei vier zwei drei"}, {.vocabulary = 270}).json());
  TrainConfig c = next("second");
  c.tokenizer.path = other;
  EXPECT_EQ(refused(c), "config: tokenizer.path " + other + " is not the tokenizer of model.from " + first() +
                            "; expected the same one, or no tokenizer.path");
  std::filesystem::remove(first() + "/tokenizer.json");
  EXPECT_NE(refused(c).find("other.json' does not belong to '" + first()), std::string::npos) << refused(c);
  c.tokenizer.path = "";
  EXPECT_EQ(refused(c), "config: model.from " + first() + " has no tokenizer.json; expected tokenizer.path to name it");
}

TEST_F(StartModels, WhatIsNoModelIsRefused) {
  TrainConfig c = next("second");
  c.start.from = folder_ / "nowhere";
  EXPECT_NE(refused(c).find("nowhere"), std::string::npos) << refused(c);
  c.start.from = folder_ / "train.tsv";
  EXPECT_NE(refused(c).find("train.tsv"), std::string::npos) << refused(c);
}

TEST_F(StartModels, AModelInTheOutputIsRefused) {
  std::filesystem::create_directories(folder_ / "second");
  std::filesystem::copy(first() + "/model.safetensors", folder_ / "second/model.safetensors");
  TrainConfig c = next("second");
  c.start.from = folder_ / "second/model.safetensors";
  EXPECT_NE(refused(c).find("lies in train.output"), std::string::npos) << refused(c);
}

}  // namespace
}  // namespace mh
