// Which layer a parameter is of: by names of our models and of the families.
#include "multihead/train/parameter_depth.h"

#include <gtest/gtest.h>

#include "multihead/models/transformer.h"

namespace mh::detail {
namespace {

TEST(ParameterDepth, CountsFromTheEmbeddingsToTheHead) {
  const ModelDepth encoder{.encoder = 12};
  for (const char* name : {"embedding.weight", "positions.weight", "types.weight", "embedding.tokens.weight",
                           "embedding.norm.bias", "patches.extra.0", "patches.positions", "encoder.relative",
                           "encoder.relative_norm.weight", "encoder.relative_bias"})
    EXPECT_EQ(parameter_level(name, encoder), 0) << name;
  EXPECT_EQ(parameter_level("encoder.layers.0.norm1.weight", encoder), 1);
  EXPECT_EQ(parameter_level("encoder.layers.0.self_attn.relative_bias", encoder), 1);
  EXPECT_EQ(parameter_level("encoder.layers.11.linear1.weight", encoder), 12);
  for (const char* name : {"encoder.norm.weight", "pooler.dense.weight", "head.out.weight", "classifier.bias"})
    EXPECT_EQ(parameter_level(name, encoder), 13) << name;
}

TEST(ParameterDepth, ADecoderStandsAboveItsEncoder) {
  const ModelDepth both{.encoder = 2, .decoder = 3};
  EXPECT_EQ(parameter_level("target_embedding.weight", both), 0);
  EXPECT_EQ(parameter_level("encoder.layers.1.linear1.weight", both), 2);
  EXPECT_EQ(parameter_level("encoder.norm.weight", both), 3);
  EXPECT_EQ(parameter_level("decoder.layers.0.cross_attn.out_proj.weight", both), 3);
  EXPECT_EQ(parameter_level("decoder.layers.2.linear1.weight", both), 5);
  EXPECT_EQ(parameter_level("decoder.norm.weight", both), 6);
  EXPECT_EQ(parameter_level("output.weight", both), 6);
}

TEST(ParameterDepth, IsCountedInAModel) {
  const auto store = std::make_shared<ParamStore>();
  const Transformer model(
      {.vocabulary = 9, .width = 8, .heads = 2, .feed_forward = 8, .encoder_layers = 2, .decoder_layers = 11}, store);
  EXPECT_EQ(depth_of(*store).encoder, 2);
  EXPECT_EQ(depth_of(*store).decoder, 11);
  EXPECT_EQ(depth_of(ParamStore()).layers(), 0);
}

TEST(ParameterDepth, FrozenIsWhatStandsBelow) {
  const ModelDepth alone{.encoder = kAnyLayers}, two{.encoder = 2};
  EXPECT_TRUE(is_frozen("embedding.weight", alone, 1));
  EXPECT_TRUE(is_frozen("encoder.layers.0.norm1.bias", alone, 1));
  EXPECT_FALSE(is_frozen("encoder.layers.1.norm1.bias", alone, 1));
  EXPECT_FALSE(is_frozen("encoder.norm.weight", alone, 24));
  EXPECT_FALSE(is_frozen("head.out.weight", alone, 24));
  EXPECT_FALSE(is_frozen("encoder.norm.weight", two, 2));
  EXPECT_TRUE(is_frozen("encoder.norm.weight", two, 3));
  EXPECT_TRUE(is_frozen("decoder.layers.0.norm1.weight", two, 3));
  EXPECT_FALSE(is_frozen("decoder.norm.weight", two, 13));
}

TEST(ParameterDepth, TheRateFallsFromTheTop) {
  const ModelDepth depth{.encoder = 2, .decoder = 1};
  EXPECT_DOUBLE_EQ(rate_at_level(4, depth, 0.5), 1);
  EXPECT_DOUBLE_EQ(rate_at_level(3, depth, 0.5), 0.5);
  EXPECT_DOUBLE_EQ(rate_at_level(0, depth, 0.5), 0.0625);
}

}  // namespace
}  // namespace mh::detail
