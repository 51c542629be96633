// Layers and stacks with PyTorch's weights: outputs and gradients are PyTorch's.
#include "multihead/nn/stacks.h"

#include "multihead/ops/shape.h"
#include "multihead/tensor/memory_cache.h"
#include "tests/nn/golden.h"

namespace mh {
namespace {

using test::error_against;
using test::Golden;

BlockOptions block_of(const Golden& golden) {
  return {.width = golden.number("d_model"),
          .heads = golden.number("nhead"),
          .feed_forward = golden.number("dim_feedforward"),
          .norm = golden.flag("norm_first") ? NormPlace::before : NormPlace::after,
          .middle = golden.argument("activation") == "gelu" ? Middle::gelu : Middle::relu};
}

Tensor rows_of(const Tensor& x) { return reshape(x, {x.size(0) * x.size(1), x.size(2)}); }

// The rows inside each length, of (B, T, C).
Tensor ragged(const Tensor& x, const std::vector<int64_t>& lengths) {
  std::vector<Tensor> parts;
  for (size_t b = 0; b < lengths.size(); ++b) {
    const auto at = static_cast<int64_t>(b);
    parts.push_back(slice(rows_of(x), 0, at * x.size(1), at * x.size(1) + lengths[b]));
  }
  return concat(parts, 0);
}

void expect_same(const Golden& golden, const ParamStore& store, Tape& tape, const Tensor& y,
                 const std::vector<std::pair<std::string, Tensor>>& inputs) {
  EXPECT_LT(error_against(y, golden.at("output")), 1e-5);
  Gradients gradients;
  tape.backward({y}, {golden.at("output_gradient")}, gradients);
  test::expect_gradients(golden, store, gradients);
  for (const auto& [name, tensor] : inputs)
    EXPECT_LT(error_against(gradients.of(tensor), golden.at("gradient.input." + name)), 1e-5) << name;
}

class TorchEncoderLayer : public testing::TestWithParam<const char*> {};

TEST_P(TorchEncoderLayer, OutputsAndGradientsAreTorchs) {
  const Golden golden(GetParam());
  const auto store = golden.weights();
  const EncoderLayer layer(Params(*store), block_of(golden));
  const Tensor x = parameter(golden.at("input.src"));
  Pass pass = Pass::inference();
  Tape tape;
  const Tensor y = layer(rows_of(x), Sequences::uniform(x.size(0), x.size(1)), pass,
                         {.mask = lengths(golden.at("input.src_lengths").to(DType::i32))});
  expect_same(golden, *store, tape, reshape(y, x.shape()), {{"src", x}});
}

INSTANTIATE_TEST_SUITE_P(Golden, TorchEncoderLayer,
                         testing::Values("encoder_layer_pre_relu", "encoder_layer_post_gelu"));

class TorchDecoderLayer : public testing::TestWithParam<const char*> {};

TEST_P(TorchDecoderLayer, OutputsAndGradientsAreTorchs) {
  const Golden golden(GetParam());
  const auto store = golden.weights();
  const DecoderLayer layer(Params(*store), block_of(golden));
  const Tensor x = parameter(golden.at("input.tgt")), memory = parameter(golden.at("input.memory"));
  const std::vector<int64_t> lengths = golden.lengths("input.memory_lengths");
  Pass pass = Pass::inference();
  Tape tape;
  const Tensor y = layer(rows_of(x), Sequences::uniform(x.size(0), x.size(1)),
                         {ragged(memory, lengths), Sequences::of_lengths(lengths)}, pass);
  expect_same(golden, *store, tape, reshape(y, x.shape()), {{"tgt", x}, {"memory", memory}});
}

INSTANTIATE_TEST_SUITE_P(Golden, TorchDecoderLayer,
                         testing::Values("decoder_layer_pre_gelu", "decoder_layer_post_relu"));

class TorchTransformer : public testing::TestWithParam<const char*> {};

TEST_P(TorchTransformer, OutputsAndGradientsAreTorchs) {
  const Golden golden(GetParam());
  const auto store = golden.weights();
  const Encoder encoder(Params(*store) / "encoder",
                        {.block = block_of(golden), .layers = golden.number("num_encoder_layers")});
  const Decoder decoder(Params(*store) / "decoder",
                        {.block = block_of(golden), .layers = golden.number("num_decoder_layers")});
  const Tensor src = parameter(golden.at("input.src")), tgt = parameter(golden.at("input.tgt"));
  const std::vector<int64_t> lengths = golden.lengths("input.src_lengths");
  const Sequences at = Sequences::of_lengths(lengths);
  Pass pass = Pass::inference();
  Tape tape;
  const EncoderOutput memory{encoder(ragged(src, lengths), at, pass), at};
  const Tensor y = decoder(rows_of(tgt), Sequences::uniform(tgt.size(0), tgt.size(1)), memory, pass);
  expect_same(golden, *store, tape, reshape(y, tgt.shape()), {{"src", src}, {"tgt", tgt}});
}

INSTANTIATE_TEST_SUITE_P(Golden, TorchTransformer, testing::Values("transformer_pre_relu", "transformer_post_gelu"));

TEST(FeedForward, DropsItsMiddleAndItsResultInTraining) {
  // A middle of ones, handed through: what is left of a one was kept twice, and scaled twice.
  const int64_t width = 64;
  const Tensor identity = zeros({width, width});
  for (int64_t i = 0; i < width; ++i) identity.data<float>()[i * width + i] = 1;
  ParamStore store({{"linear1.weight", zeros({width, width})},
                    {"linear1.bias", full({width}, 1)},
                    {"linear2.weight", identity},
                    {"linear2.bias", zeros({width})}});
  const FeedForward layer(Params(store), {.width = width, .heads = 1, .feed_forward = width, .dropout = 0.5F});
  const Tensor x = randn({32, width}, 1), nothing = zeros({32, width});
  Pass training = Pass::training(1), inference = Pass::inference();
  const Tensor dropped = layer.add_to(nothing, x, training), whole = layer.add_to(nothing, x, inference);
  int64_t kept = 0;
  for (int64_t n = 0; n < dropped.count(); ++n) {
    const float value = dropped.data<float>()[n];
    EXPECT_EQ(whole.data<float>()[n], 1);
    EXPECT_TRUE(value == 0 || value == 4) << value;
    kept += value != 0;
  }
  // A quarter of 2048, give or take five standard deviations.
  EXPECT_NEAR(static_cast<double>(kept), 512, 98);
}

TEST(Encoder, CausalStackSeesNoLaterRows) {
  ParamStore store;
  const Encoder stack(Params(store), {.block = {.width = 8,
                                                .heads = 2,
                                                .feed_forward = 12,
                                                .middle = Middle::swiglu,
                                                .normalisation = {.rms = true},
                                                .positions = Rotary{}},
                                      .layers = 2,
                                      .causal = true});
  const Tensor x = randn({6, 8}, 1);
  Pass pass = Pass::inference();
  const Tensor all = stack(x, Sequences::of_lengths({6}), pass);
  const Tensor part = stack(x.slice(0, 0, 4).clone(), Sequences::of_lengths({4}), pass);
  EXPECT_LT(error_against(all.slice(0, 0, 4), part), 1e-6);
}

TEST(Encoder, CausalStackKeepsTheCallersMask) {
  ParamStore store;
  const Encoder stack(Params(store),
                      {.block = {.width = 8, .heads = 2, .feed_forward = 12}, .layers = 2, .causal = true});
  const Tensor x = randn({5, 8}, 1), moved = x.clone();
  moved.slice(0, 0, 1).copy_from(randn({1, 8}, 2));
  const Sequences at = Sequences::of_lengths({5});
  const AttendOptions without_first{.mask = drop(tensor<bool>({true, false, false, false, false}, {5}))};
  const auto later_rows = [&](const Tensor& rows, const AttendOptions& options) {
    Pass pass = Pass::inference();
    return stack(rows, at, pass, options).slice(0, 1, 5);
  };
  EXPECT_GT(error_against(later_rows(moved, {}), later_rows(x, {})), 1e-3) << "the first row is seen";
  EXPECT_EQ(error_against(later_rows(moved, without_first), later_rows(x, without_first)), 0) << "it is masked";
  // And the stack stays causal beside it.
  Pass pass = Pass::inference();
  const Tensor part = stack(x.slice(0, 0, 3).clone(), Sequences::of_lengths({3}), pass,
                            {.mask = drop(tensor<bool>({true, false, false}, {3}))});
  EXPECT_LT(error_against(later_rows(x, without_first).slice(0, 0, 2), part.slice(0, 1, 3)), 1e-6);
}

// Bytes of tensors between the forward and the backward pass of three layers.
int64_t kept_by(bool again) {
  ParamStore store;
  const StackOptions options{
      .block = {.width = 32, .heads = 2, .feed_forward = 128, .dropout = 0.1F}, .layers = 3, .recompute = again};
  const Encoder encoder(Params(store) / "e", options);
  const Decoder decoder(Params(store) / "d", options);
  const Tensor x = parameter(randn({512, 32}, 1));
  const Sequences at = Sequences::of_lengths({200, 312});
  const int64_t before = memory_use().in_use;
  Pass pass = Pass::training(9);
  Tape tape;
  const Tensor y = decoder(x, at, {encoder(x, at, pass), at}, pass);
  return memory_use().in_use - before;
}

TEST(Stacks, RecomputedLayersKeepLittle) {
  if (kept_by(false) == 0) GTEST_SKIP() << "under a sanitizer tensors are not counted";
  const int64_t rows = 512 * 32 * 4;
  // Each of six layers keeps a dozen arrays of rows and the middle, four times as wide; recomputed, its input alone.
  EXPECT_GT(kept_by(false), 6 * 12 * rows);
  EXPECT_LT(kept_by(true), (6 + 6) * rows);
}

TEST(Decoder, RecomputedLayersHaveTheSameBits) {
  Tensor y[2];
  std::map<std::string, Tensor> gradients[2];
  for (const bool again : {false, true}) {
    ParamStore store;
    const StackOptions options{
        .block = {.width = 16, .heads = 2, .feed_forward = 24, .dropout = 0.3F}, .layers = 2, .recompute = again};
    const Encoder encoder(Params(store) / "e", options);
    const Decoder decoder(Params(store) / "d", options);
    const Tensor x = parameter(randn({7, 16}, 1));
    const Sequences at = Sequences::of_lengths({3, 4});
    Pass pass = Pass::training(9);
    Tape tape;
    y[again] = decoder(x, at, {encoder(x, at, pass), at}, pass);
    Gradients sums;
    tape.backward({y[again]}, {randn({7, 16}, 2)}, sums);
    gradients[again]["x"] = sums.of(x);
    for (const auto& param : store.all()) gradients[again][param->name] = sums.of(param->value);
  }
  EXPECT_EQ(error_against(y[1], y[0]), 0);
  for (const auto& [name, g] : gradients[0]) EXPECT_LT(error_against(gradients[1].at(name), g), 1e-6) << name;
}

TEST(Encoder, Bf16StaysNearF32) {
  for (const NormPlace place : {NormPlace::before, NormPlace::after}) {
    ParamStore store({.compute = DType::bf16});
    const Encoder stack(Params(store),
                        {.block = {.width = 32, .heads = 2, .feed_forward = 64, .norm = place}, .layers = 2});
    const Tensor x = randn({7, 32}, 1);
    Pass exact = Pass::inference(), half = Pass::inference(DType::bf16);
    const Tensor y = stack(x, Sequences::of_lengths({3, 4}), half);
    EXPECT_EQ(y.dtype(), DType::bf16);
    EXPECT_LT(error_against(y, stack(x, Sequences::of_lengths({3, 4}), exact)), 0.03);
  }
}

}  // namespace
}  // namespace mh
