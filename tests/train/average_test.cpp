// The mean of weights: exact, of files and of checkpoints, and only of what belongs together.
#include "multihead/train/average.h"

#include <gtest/gtest.h>

#include "multihead/io/checkpoint.h"
#include "multihead/models/config_json.h"
#include "multihead/models/model_file.h"
#include "multihead/train/config/config.h"
#include "multihead/train/training_state.h"
#include "tests/harness/refusal.h"
#include "tests/harness/temporary_folder.h"

namespace mh {
namespace {

using Metadata = std::map<std::string, std::string>;

TEST(Average, IsTakenInDoubleAndRoundedOnce) {
  const TemporaryFolder folder;
  // In f32 the large numbers would swallow the small one.
  write_safetensors(folder / "a", {.tensors = {{"w", tensor<float>({1e8F, 1}, {2})}}, .metadata = {}});
  write_safetensors(folder / "b", {.tensors = {{"w", tensor<float>({1, 2}, {2})}}, .metadata = {}});
  write_safetensors(folder / "c", {.tensors = {{"w", tensor<float>({-1e8F, 3}, {2})}}, .metadata = {}});
  const Tensor mean = average_weights({folder / "a", folder / "b", folder / "c"}).tensors.at("w");
  EXPECT_EQ(mean.dtype(), DType::f32);
  EXPECT_EQ(mean.data<float>()[0], 1.0F / 3);
  EXPECT_EQ(mean.data<float>()[1], 2);
}

TEST(Average, KeepsTypesAndWhatAllAgreeOn) {
  const TemporaryFolder folder;
  const auto write = [&](const char* name, double value, const std::string& note) {
    write_safetensors(folder / name, {.tensors = {{"half", full({2, 3}, value, DType::bf16)},
                                                  {"single", full({}, value, DType::f16)},
                                                  {"table", full({4}, 7, DType::i32)},
                                                  {"none", empty({0, 5})}},
                                      .metadata = {{"note", note}, {"format", "pt"}}});
  };
  write("a", 1, "first");
  write("b", 2, "second");
  const Safetensors mean = average_weights({folder / "a", folder / "b"});
  EXPECT_EQ(mean.tensors.at("half").dtype(), DType::bf16);
  EXPECT_EQ(mean.tensors.at("half").item({1, 2}), 1.5);
  EXPECT_EQ(mean.tensors.at("single").item({}), 1.5);
  EXPECT_EQ(mean.tensors.at("table").item({3}), 7);
  EXPECT_TRUE(mean.tensors.at("none").shape() == Shape({0, 5}));
  EXPECT_EQ(mean.metadata, (Metadata{{"format", "pt"}}));
}

TEST(Average, OfCheckpointsIsAModel) {
  const TemporaryFolder folder;
  TrainConfig config;
  config.model = {
      .vocabulary = 20, .width = 8, .heads = 2, .feed_forward = 16, .encoder_layers = 1, .decoder_layers = 1};
  const Transformer model(config.model, std::make_shared<ParamStore>(ParamStoreOptions{.seed = 3}));
  detail::TrainingState state;
  state.config = to_toml(config);
  Checkpoint checkpoint{.step = 5, .tensors = {{"adam.w", full({3}, 1)}}, .state = state.to_json()};
  for (const auto& [name, tensor] : model.params().values()) checkpoint.tensors["model." + name] = tensor;
  save_checkpoint(folder.path(), checkpoint);
  save_transformer(folder / "same", model);

  // A checkpoint and the model it holds: their mean is that model.
  const Safetensors mean = average_weights({list_checkpoints(folder.path()).front(), folder / "same"});
  write_safetensors(folder / "mean", mean);
  EXPECT_EQ(text_of(folder / "mean"), text_of(folder / "same"));
  EXPECT_EQ(config_to_json(load_transformer(folder / "mean").config()), config_to_json(config.model));
}

TEST(Average, RefusesWhatDoesNotBelongTogether) {
  const TemporaryFolder folder;
  const auto write = [&](const char* name, NamedTensors tensors, Metadata metadata = {}) {
    write_safetensors(folder / name, {.tensors = std::move(tensors), .metadata = std::move(metadata)});
  };
  const Tensor w = full({2}, 1);
  write("first", {{"w", w}}, {{"config", "{}"}});
  write("another name", {{"v", w}}, {{"config", "{}"}});
  write("one more", {{"w", w}, {"v", w}}, {{"config", "{}"}});
  write("another shape", {{"w", full({1, 2}, 1)}}, {{"config", "{}"}});
  write("another type", {{"w", full({2}, 1, DType::f64)}}, {{"config", "{}"}});
  write("another config", {{"w", w}}, {{"config", "{ }"}});
  write("no config", {{"w", w}});
  const std::pair<const char*, const char*> wrong[] = {
      {"another name", "another name' lacks the tensor 'w'"},
      {"one more", "one more' holds the tensor 'v', which the first lacks"},
      {"another shape", "tensor 'w' is f32 [2] in the first and f32 [1, 2] in"},
      {"another type", "tensor 'w' is f32 [2] in the first and f64 [2] in"},
      {"another config", "the config of"},
      {"no config", "the config of"},
  };
  for (const auto& [name, part] : wrong) {
    const Refusal refusal = refusal_of([&] { average_weights({folder / "first", folder / name}); });
    EXPECT_EQ(refusal.kind, ErrorKind::invalid_argument);
    EXPECT_TRUE(refusal.says(part)) << refusal.sentence;
  }
  write("a", {{"table", full({2}, 1, DType::i32)}});
  write("b", {{"table", full({2}, 2, DType::i32)}});
  EXPECT_TRUE(refusal_of([&] {
                average_weights({folder / "a", folder / "b"});
              }).says("tensor 'table', of i32, differs"));
  EXPECT_TRUE(refusal_of([&] { average_weights({}); }).says("no files"));
}

TEST(Average, RefusesCheckpointsWithoutAModel) {
  const TemporaryFolder folder;
  write_checkpoint(folder / "none", {.step = 1, .tensors = {{"w", full({1}, 1)}}, .state = "{}"});
  EXPECT_TRUE(refusal_of([&] { average_weights({folder / "none"}); }).says("no weights of a model"));
  write_checkpoint(folder / "stateless", {.step = 1, .tensors = {{"model.w", full({1}, 1)}}, .state = "{}"});
  EXPECT_EQ(refusal_of([&] { average_weights({folder / "stateless"}); }).kind, ErrorKind::io);
}

}  // namespace
}  // namespace mh
