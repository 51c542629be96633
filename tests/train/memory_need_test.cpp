// The memory a model takes: counted by hand, equal to what the model then has, and refused before it is taken.
#include "multihead/train/memory_need.h"

#include <gtest/gtest.h>

#include "multihead/models/decoder_only.h"
#include "multihead/train/parameter_depth.h"
#include "tests/harness/refusal.h"

namespace mh::detail {
namespace {

TransformerConfig small() {
  return {.vocabulary = 40,
          .width = 16,
          .heads = 2,
          .feed_forward = 24,
          .encoder_layers = 1,
          .decoder_layers = 2,
          .max_length = 8};
}

int64_t made(const TransformerConfig& config) {
  return Transformer(config, std::make_shared<ParamStore>()).params().count();
}

TEST(MemoryNeed, CountsTheParametersOfEveryKindOfModel) {
  // The paper's base model with 37,000 shared tokens (Vaswani et al., table 3: 65 million).
  EXPECT_NEAR(static_cast<double>(parameter_count({.vocabulary = 37000,
                                                   .width = 512,
                                                   .heads = 8,
                                                   .feed_forward = 2048,
                                                   .encoder_layers = 6,
                                                   .decoder_layers = 6})),
              65e6, 2e6);
  for (const auto positions : {ModelPositions::sinusoidal, ModelPositions::learned, ModelPositions::rotary,
                               ModelPositions::alibi, ModelPositions::t5}) {
    for (const auto middle : {Middle::relu, Middle::gelu, Middle::swiglu, Middle::geglu}) {
      for (const bool tied : {true, false}) {
        for (const auto norm : {NormPlace::before, NormPlace::after}) {
          TransformerConfig c = small();
          c.positions = positions;
          c.middle = middle;
          c.tied = tied;
          c.norm = norm;
          EXPECT_EQ(parameter_count(c), made(c));
          EXPECT_EQ(parameter_count(c, TaskKind::language_model),
                    DecoderOnly(decoder_only_config(c), std::make_shared<ParamStore>()).params().count());
        }
      }
    }
  }
}

TEST(MemoryNeed, IsTheBytesOfWeightsGradientsAndMoments) {
  TrainConfig config;
  config.model = small();
  const int64_t p = parameter_count(config.model), table = 8 * 16 * 4;
  EXPECT_EQ(training_bytes(config), 16 * p + table);
  config.train.ema = 0.9;
  EXPECT_EQ(training_bytes(config), 20 * p + table);
  config.train.precision = DType::bf16;
  config.model.positions = ModelPositions::rotary;
  int64_t matrices = 0;
  const auto store = std::make_shared<ParamStore>(ParamStoreOptions{.compute = DType::bf16});
  const Transformer model(config.model, store);
  for (const auto& param : store->all()) matrices += param->copy ? param->copy.count() : 0;
  EXPECT_EQ(training_bytes(config), 20 * p + 2 * matrices);
}

TEST(MemoryNeed, OfFrozenParametersThereAreNoGradientsAndMoments) {
  for (const bool tied : {true, false}) {
    TrainConfig config;
    config.model = small();
    config.model.positions = ModelPositions::learned;
    config.model.tied = tied;
    const int64_t all = training_bytes(config);
    for (const int64_t frozen : {1, 2, 3}) {
      config.train.frozen = frozen;
      const auto store = std::make_shared<ParamStore>(ParamStoreOptions{
          .is_frozen = [&](const std::string& name) { return is_frozen(name, {.encoder = 1}, frozen); }});
      const Transformer model(config.model, store);
      int64_t kept = 0;
      for (const auto& param : store->all()) kept += param->value.trace() == 0 ? param->value.count() : 0;
      if (frozen > 1) kept -= 2 * config.model.width;  // the encoder's last norm is counted as learned: at least
      EXPECT_EQ(training_bytes(config), all - 12 * kept) << frozen << tied;
    }
  }
}

TEST(MemoryNeed, MoreThanThereIsIsRefusedWithBothNumbers) {
  TrainConfig config;
  config.model = small();
  const int64_t needed = training_bytes(config);
  config.model.vocabulary = 0;  // not known yet: 260 at least
  check_fits_memory(config, 1 << 30);
  TrainConfig settled = config;
  settled.model.vocabulary = 260;
  const int64_t least = training_bytes(settled);
  EXPECT_GT(least, needed);
  check_fits_memory(config, least);
  EXPECT_EQ(refusal_of([&] { check_fits_memory(config, least - 1); }).sentence,
            fmt::format("train: the model has {} parameters, and training it takes at least {} bytes (0.0 GiB); "
                        "expected at most {} (0.0 GiB), the memory that is free; try a smaller model.width, "
                        "model.feed_forward, vocabulary or fewer layers",
                        parameter_count(settled.model), least, least - 1));
}

TEST(MemoryNeed, TheLargestModelThatCanBeNamedDoesNotOverflow) {
  TrainConfig config;
  config.model = {.vocabulary = 10000000,
                  .width = 65536,
                  .heads = 4096,
                  .feed_forward = 1000000,
                  .encoder_layers = 1024,
                  .decoder_layers = 1024,
                  .middle = Middle::swiglu,
                  .positions = ModelPositions::learned,
                  .tied = false,
                  .max_length = 1000000};
  config.train.ema = 0.9;
  EXPECT_GT(training_bytes(config), int64_t{1} << 52);
}

}  // namespace
}  // namespace mh::detail
