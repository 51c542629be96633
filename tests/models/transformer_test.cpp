// The whole model: PyTorch's logits, loss and gradients; steps over kept keys give the rows of the whole pass.
#include "multihead/models/transformer.h"

#include "tests/nn/golden.h"

namespace mh {
namespace {

using test::error_against;
using test::Golden;

std::vector<std::vector<int32_t>> without_padding(const Tensor& ids) {
  std::vector<std::vector<int32_t>> out;
  for (int64_t b = 0; b < ids.size(0); ++b) {
    out.emplace_back();
    for (int64_t t = 0; t < ids.size(1); ++t) {
      if (ids.item({b, t}) != 0) out.back().push_back(static_cast<int32_t>(ids.item({b, t})));
    }
  }
  return out;
}

TransformerConfig config_of(const Golden& golden) {
  return {.vocabulary = golden.number("vocabulary"),
          .width = golden.number("width"),
          .heads = golden.number("heads"),
          .feed_forward = golden.number("feed_forward"),
          .encoder_layers = golden.number("encoder_layers"),
          .decoder_layers = golden.number("decoder_layers"),
          .dropout = 0,
          .tied = golden.flag("tied"),
          .max_length = golden.number("max_length")};
}

class TorchModel : public testing::TestWithParam<const char*> {};

TEST_P(TorchModel, LogitsLossAndGradientsAreTorchs) {
  const Golden golden(GetParam());
  const auto store = golden.weights();
  const Transformer model(config_of(golden), store);
  const auto source = without_padding(golden.at("input.source")), target = without_padding(golden.at("input.target"));
  PairBatch batch{.source = token_batch(source), .input = token_batch(target), .labels = {}};
  batch.labels = token_batch(without_padding(golden.at("input.labels"))).ids;

  Pass pass = Pass::training(1);
  Tape tape;
  const CrossEntropy entropy = model.loss(batch, pass, 0.1F);
  EXPECT_NEAR(entropy.loss.item({}), golden.at("loss").item({}), 1e-5 * golden.at("loss").item({}));
  test::expect_gradients(golden, *store, tape.backward(entropy.loss));

  Pass still = Pass::inference();
  const Tensor logits = model.logits(model.decode(batch.input, model.encode(batch.source, still), still));
  for (size_t b = 0; b < target.size(); ++b) {
    const int64_t begin = batch.input.at.starts.item({static_cast<int64_t>(b)}), count = target[b].size();
    EXPECT_LT(error_against(logits.slice(0, begin, begin + count),
                            golden.at("logits").select(0, static_cast<int64_t>(b)).slice(0, 0, count)),
              1e-5);
  }
}

INSTANTIATE_TEST_SUITE_P(Golden, TorchModel, testing::Values("seq2seq_tied", "seq2seq_untied"));

class Positions : public testing::TestWithParam<ModelPositions> {};

TEST_P(Positions, StepsGiveTheRowsOfTheWholePass) {
  const TransformerConfig config{.vocabulary = 50,
                                 .width = 24,
                                 .heads = 3,
                                 .feed_forward = 20,
                                 .encoder_layers = 1,
                                 .decoder_layers = 2,
                                 .positions = GetParam(),
                                 .max_length = 40};
  Transformer model(config, std::make_shared<ParamStore>());
  for (const bool packed : {false, true}) {
    if (packed) model.pack();
    Pass pass = Pass::inference();
    const EncoderOutput memory = model.encode(token_batch({{5, 6, 7, 2}, {9, 2}, {8, 11, 2}}), pass);
    const std::vector<std::vector<int32_t>> written{{1, 10, 11, 12, 13}, {1, 20, 21, 22, 23}, {1, 30, 31, 32, 33}};
    const TokenBatch input = token_batch(written);
    const Tensor whole = model.logits(model.decode(input, memory, pass));
    AttentionState state = model.begin(memory, AttentionState::room(3, 2, 20), pass);
    for (size_t t = 0; t < 5; ++t) {
      const Tensor logits = model.step(state, {written[0][t], written[1][t], written[2][t]}, pass);
      for (int64_t b = 0; b < 3; ++b) {
        const int64_t row = b * 5 + static_cast<int64_t>(t);
        EXPECT_LT(error_against(logits.slice(0, b, b + 1), whole.slice(0, row, row + 1)), 1e-5);
      }
    }
  }
}

TEST_P(Positions, ChosenHypothesesGoOnFromTheirParents) {
  const TransformerConfig config{.vocabulary = 50,
                                 .width = 24,
                                 .heads = 3,
                                 .feed_forward = 20,
                                 .encoder_layers = 1,
                                 .decoder_layers = 2,
                                 .positions = GetParam(),
                                 .max_length = 40};
  const Transformer model(config, std::make_shared<ParamStore>());
  Pass pass = Pass::inference();
  const EncoderOutput memory = model.encode(token_batch({{5, 6, 7, 2}, {9, 2}}), pass);
  AttentionState state = model.begin(memory, AttentionState::room(2, 2, 20), pass);
  model.step(state, {1, 1}, pass);
  state.choose({1, 1}, {0, 2});  // the first sentence is done, the second has two
  model.step(state, {20, 30}, pass);
  state.choose({1, 0}, {0, 2});
  const Tensor logits = model.step(state, {31, 21}, pass);

  const EncoderOutput alone = model.encode(token_batch({{9, 2}}), pass);
  const std::vector<std::vector<int32_t>> written{{1, 30, 31}, {1, 20, 21}};
  for (int64_t n = 0; n < 2; ++n) {
    const Tensor whole = model.logits(model.decode(token_batch({written[static_cast<size_t>(n)]}), alone, pass));
    EXPECT_LT(error_against(logits.slice(0, n, n + 1), whole.slice(0, 2, 3)), 1e-5);
  }
}

INSTANTIATE_TEST_SUITE_P(Each, Positions,
                         testing::Values(ModelPositions::sinusoidal, ModelPositions::learned, ModelPositions::rotary,
                                         ModelPositions::alibi, ModelPositions::t5));

TEST(Transformer, CrossWeightsAreRowsOfProbabilities) {
  const TransformerConfig config{.vocabulary = 50,
                                 .width = 24,
                                 .heads = 3,
                                 .feed_forward = 20,
                                 .encoder_layers = 1,
                                 .decoder_layers = 2,
                                 .max_length = 40};
  const Transformer model(config, std::make_shared<ParamStore>());
  Pass pass = Pass::inference();
  const EncoderOutput memory = model.encode(token_batch({{5, 6, 7, 2}}), pass);
  const Tensor weights = model.cross_weights(token_batch({{1, 10, 11}}), memory, 1, pass);
  EXPECT_EQ(to_string(weights.shape()), "[1, 3, 3, 4]");
  for (int64_t h = 0; h < 3; ++h) {
    for (int64_t t = 0; t < 3; ++t) {
      double sum = 0;
      for (int64_t j = 0; j < 4; ++j) sum += weights.item({0, h, t, j});
      EXPECT_NEAR(sum, 1, 1e-5);
    }
  }
}

TEST(Transformer, RefusesWhatIsLongerThanItsPositions) {
  const Transformer model({.vocabulary = 10, .width = 8, .heads = 2, .feed_forward = 8, .max_length = 3},
                          std::make_shared<ParamStore>());
  Pass pass = Pass::inference();
  EXPECT_THROW(model.encode(token_batch({{4, 5, 6, 7}}), pass), Error);
}

}  // namespace
}  // namespace mh
