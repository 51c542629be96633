// The layer: PyTorch's weights give PyTorch's outputs and gradients; head masks; free widths; positions.
#include "multihead/nn/multi_head_attention.h"

#include <array>

#include "multihead/ops/elementwise.h"
#include "multihead/ops/rows/embedding.h"
#include "tests/nn/golden.h"

namespace mh {
namespace {

using test::error_against;
using test::Golden;

class TorchAttention : public testing::TestWithParam<const char*> {};

TEST_P(TorchAttention, OutputsAndGradientsAreTorchs) {
  const Golden golden(GetParam());
  const auto store = golden.weights();
  const MultiHeadAttention layer(Params(*store), {.model = golden.number("embed_dim"),
                                                  .heads = golden.number("num_heads"),
                                                  .key_input = golden.number("kdim"),
                                                  .value_input = golden.number("vdim"),
                                                  .bias = golden.flag("bias")});
  const Tensor q = parameter(golden.at("input.query"));
  const bool cross = golden.has("input.key");
  const Tensor k = cross ? parameter(golden.at("input.key")) : q, v = cross ? parameter(golden.at("input.value")) : q;
  AttendOptions options;
  if (golden.flag("causal")) options.mask = from_torch_causal();
  if (golden.has("input.key_lengths"))
    options.mask = options.mask & lengths(golden.at("input.key_lengths").to(DType::i32));

  Pass pass = Pass::inference();
  Tape tape;
  const Tensor y = layer(q, k, v, pass, options);
  EXPECT_LT(error_against(y, golden.at("output")), 1e-5);
  Gradients gradients;
  tape.backward({y}, {golden.at("output_gradient")}, gradients);
  test::expect_gradients(golden, *store, gradients);
  EXPECT_LT(error_against(gradients.of(q), golden.at("gradient.input.query")), 1e-5);
  if (cross) {
    EXPECT_LT(error_against(gradients.of(k), golden.at("gradient.input.key")), 1e-5);
    EXPECT_LT(error_against(gradients.of(v), golden.at("gradient.input.value")), 1e-5);
  }
}

INSTANTIATE_TEST_SUITE_P(Golden, TorchAttention,
                         testing::Values("attention_self", "attention_causal", "attention_one_head", "attention_cross",
                                         "attention_widths", "attention_widths_no_bias", "attention_lengths"));

MultiHeadAttentionOptions uneven() {
  return {.model = 12, .heads = 4, .key_heads = 2, .key_width = 5, .value_width = 7, .output = 9};
}

TEST(MultiHeadAttention, RaggedRowsAreEachSequenceAlone) {
  ParamStore store;
  for (const LayerPositions& positions :
       {LayerPositions{}, LayerPositions{Rotary{}}, LayerPositions{Alibi{}}, LayerPositions{T5Buckets{.buckets = 8}}}) {
    MultiHeadAttentionOptions options = uneven();
    options.key_width = 6;
    options.positions = positions;
    const MultiHeadAttention layer(Params(store) / static_cast<int64_t>(positions.index()), options);
    const Tensor x = randn({8, 12}, 1);
    Pass pass = Pass::inference();
    const Tensor all = layer(x, Sequences::of_lengths({3, 0, 5}), pass);
    EXPECT_EQ(to_string(all.shape()), "[8, 9]");
    const Tensor first = layer(x.slice(0, 0, 3).clone(), Sequences::of_lengths({3}), pass);
    const Tensor last = layer(x.slice(0, 3, 8).clone(), Sequences::of_lengths({5}), pass);
    EXPECT_EQ(error_against(all.slice(0, 0, 3), first), 0);
    EXPECT_EQ(error_against(all.slice(0, 3, 8), last), 0);
    const Tensor padded =
        layer(x.slice(0, 3, 8).clone().reshape({1, 5, 12}), x.slice(0, 3, 8).clone().reshape({1, 5, 12}),
              x.slice(0, 3, 8).clone().reshape({1, 5, 12}), pass);
    EXPECT_LT(error_against(padded.reshape({5, 9}), last), 1e-5);
  }
}

TEST(MultiHeadAttention, RepeatedRowsAreProjectedOnceToTheSameBits) {
  ParamStore store;
  const MultiHeadAttention layer(Params(store), {.model = 16, .heads = 2});
  const Tensor which = tensor<int32_t>({0, 1, 0, 2, 1}, {5}), first = tensor<int32_t>({0, 1, 3}, {3});
  const Tensor x = embedding(randn({3, 16}, 1), which), positions = zeros({5}, DType::i32);
  const auto plain = layer.project(x, positions), once = layer.project(x, positions, {first, which});
  EXPECT_EQ(error_against(once.q, plain.q), 0);
  EXPECT_EQ(error_against(once.k, plain.k), 0);
  EXPECT_EQ(error_against(once.v, plain.v), 0);
}

TEST(MultiHeadAttention, HeadMaskScalesHeadsAndHasAGradient) {
  ParamStore store;
  const MultiHeadAttention layer(Params(store), uneven());
  const Tensor x = randn({5, 12}, 1);
  const Sequences at = Sequences::of_lengths({2, 3});
  Pass pass = Pass::inference();
  const Tensor plain = layer(x, at, pass);
  EXPECT_LT(error_against(layer(x, at, pass, {.head_mask = full({4}, 1)}), plain), 1e-6);
  const Tensor none = layer(x, at, pass, {.head_mask = zeros({2, 4})});
  EXPECT_EQ(error_against(none, zeros({5, 9})), 0);  // a fresh output bias is 0

  // Linear in the mask: the gradient of Σ y with respect to one entry is what that head alone gives.
  const Tensor mask = parameter(full({2, 4}, 1));
  Tape tape;
  const Tensor y = layer(x, at, pass, {.head_mask = mask});
  Gradients gradients;
  tape.backward({y}, {full(y.shape(), 1)}, gradients);
  for (int64_t b = 0; b < 2; ++b) {
    for (int64_t h = 0; h < 4; ++h) {
      const Tensor one = zeros({2, 4});
      one.data<float>()[b * 4 + h] = 1;
      const NoTape closed;
      const Tensor alone = layer(x, at, pass, {.head_mask = one});
      double sum = 0;
      for (int64_t i = 0; i < alone.count(); ++i) sum += alone.data<float>()[i];
      EXPECT_NEAR(gradients.of(mask).item({b, h}), sum, 1e-4);
    }
  }
}

TEST(MultiHeadAttention, ARowOfTheHeadMaskBelongsToItsSequence) {
  ParamStore store;
  const MultiHeadAttention layer(Params(store), uneven());
  const Tensor x = randn({8, 12}, 1), mask = randn({2, 4}, 2);
  Pass pass = Pass::inference();
  const Tensor all = layer(x, Sequences::of_lengths({3, 5}), pass, {.head_mask = mask});
  for (const auto& [b, begin, end] : {std::array<int64_t, 3>{0, 0, 3}, {1, 3, 8}}) {
    const Tensor alone = layer(x.slice(0, begin, end).clone(), Sequences::of_lengths({end - begin}), pass,
                               {.head_mask = mask.slice(0, b, b + 1).clone().reshape({4})});
    EXPECT_EQ(error_against(all.slice(0, begin, end), alone), 0) << "sequence " << b;
  }
}

// y - bias is linear in the mask: no head, no more than the bias; every head twice, twice as much; and a head of one
// sequence changes that sequence alone.
TEST(MultiHeadAttention, HeadMaskCountsInTheBatchedCall) {
  ParamStore store;
  const MultiHeadAttention layer(Params(store), uneven());
  const Tensor bias = randn({9}, 3);
  for (const auto& param : store.all()) {
    if (param->name == "out_proj.bias") param->value.detach().copy_from(bias);
  }
  const Tensor x = randn({2, 5, 12}, 1);
  const auto output = [&](const Tensor& mask) {
    Pass pass = Pass::inference();
    return layer(x, x, x, pass, {.head_mask = mask});
  };
  const Tensor none = output(zeros({4})), once = output(full({4}, 1)), twice = output(full({4}, 2)), plain = output({});
  const Tensor by_sequence = full({2, 4}, 1);
  by_sequence.slice(0, 1, 2).copy_from(zeros({1, 4}));
  const Tensor second_off = output(by_sequence);
  for (int64_t t = 0; t < 5; ++t) {
    for (int64_t c = 0; c < 9; ++c) {
      const double at_rest = bias.item({c});
      EXPECT_NEAR(none.item({1, t, c}), at_rest, 1e-6);
      EXPECT_NEAR(once.item({1, t, c}), plain.item({1, t, c}), 1e-5);
      EXPECT_NEAR(twice.item({1, t, c}) - at_rest, 2 * (plain.item({1, t, c}) - at_rest), 1e-5);
      EXPECT_NEAR(second_off.item({0, t, c}), plain.item({0, t, c}), 1e-5);
      EXPECT_NEAR(second_off.item({1, t, c}), at_rest, 1e-6);
    }
  }
  EXPECT_GT(error_against(once, none), 0.1);
}

TEST(MultiHeadAttention, WeightsAreDroppedInTrainingAlone) {
  ParamStore store;
  MultiHeadAttentionOptions options = uneven();
  options.dropout = 0.5;
  const MultiHeadAttention layer(Params(store), options);
  const Tensor x = randn({8, 12}, 1);
  const Sequences at = Sequences::of_lengths({3, 5});
  const auto outcome = [&](Pass pass) { return layer(x, at, pass); };
  EXPECT_GT(error_against(outcome(Pass::training(1)), outcome(Pass::inference())), 0.1);
  EXPECT_GT(error_against(outcome(Pass::training(1)), outcome(Pass::training(2))), 0.1);
  EXPECT_EQ(error_against(outcome(Pass::training(1)), outcome(Pass::training(1))), 0);
}

TEST(MultiHeadAttention, RefusesSizesThatDoNotFit) {
  ParamStore store;
  EXPECT_THROW(MultiHeadAttention(Params(store) / "a", {.model = 10, .heads = 3}), Error);
  EXPECT_THROW(MultiHeadAttention(Params(store) / "b", {.model = 12, .heads = 4, .key_heads = 3}), Error);
  EXPECT_THROW(MultiHeadAttention(Params(store) / "c", {}), Error);
}

}  // namespace
}  // namespace mh
