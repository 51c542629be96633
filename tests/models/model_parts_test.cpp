// What the model adds to its stacks: the dropout of embeddings, positions by stack, and refusals of tapes in decoding.
#include <cmath>

#include "multihead/models/transformer.h"
#include "multihead/nn/positions.h"
#include "tests/harness/refusal.h"
#include "tests/nn/golden.h"

namespace mh {
namespace {

using test::error_against;

// Every embedding is 1, no positions are added and there are no layers: only the last normalisation reads the rows. A
// row of equal numbers becomes 0; one of which a share k was kept becomes (1 - k) / √(k (1 - k)) there, and
// -k / √(k (1 - k)) elsewhere.
TEST(TransformerParts, EmbeddingsAreDroppedInTrainingAlone) {
  const int64_t width = 256;
  const TransformerConfig config{.vocabulary = 5,
                                 .width = width,
                                 .heads = 2,
                                 .feed_forward = 4,
                                 .encoder_layers = 0,
                                 .decoder_layers = 0,
                                 .positions = ModelPositions::rotary,
                                 .dropout = 0.25F};
  const auto store = std::make_shared<ParamStore>();
  const Transformer model(config, store);
  for (const auto& param : store->all()) {
    if (param->name == "embedding.weight") param->value.detach().copy_from(full({5, width}, 1));
  }
  const TokenBatch tokens = token_batch({{3, 4}, {3}});
  Pass training = Pass::training(1), inference = Pass::inference();
  const EncoderOutput memory = model.encode(tokens, training), whole = model.encode(tokens, inference);
  for (const Tensor& rows : {memory.rows, model.decode(tokens, whole, training)}) {
    for (int64_t r = 0; r < 3; ++r) {
      int64_t kept = 0;
      for (int64_t c = 0; c < width; ++c) kept += rows.item({r, c}) > 0;
      EXPECT_NEAR(static_cast<double>(kept), 192, 35) << "five standard deviations";
      const double k = static_cast<double>(kept) / static_cast<double>(width), spread = std::sqrt(k * (1 - k));
      for (int64_t c = 0; c < width; ++c)
        EXPECT_NEAR(rows.item({r, c}), rows.item({r, c}) > 0 ? (1 - k) / spread : -k / spread, 1e-4);
    }
  }
  EXPECT_LT(error_against(whole.rows, zeros({3, width})), 1e-3);
}

// The encoder looks both ways, the decoder back alone, and each counts distances so: beside stacks made by hand. From a
// distance of 8 on the two ways of counting differ.
TEST(TransformerParts, T5BucketsLookBothWaysInTheEncoderAlone) {
  const TransformerConfig config{.vocabulary = 20,
                                 .width = 16,
                                 .heads = 2,
                                 .feed_forward = 24,
                                 .encoder_layers = 1,
                                 .decoder_layers = 1,
                                 .positions = ModelPositions::t5,
                                 .dropout = 0};
  const auto store = std::make_shared<ParamStore>();
  const Transformer model(config, store);
  for (const auto& param : store->all()) {
    if (param->name.ends_with("relative_bias")) param->value.detach().copy_from(randn(param->value.shape(), 7));
  }
  const BlockOptions block{.width = 16, .heads = 2, .feed_forward = 24};
  ParamStore own(store->values());
  BlockOptions both_ways = block, back_alone = block;
  both_ways.positions = T5Buckets{.bidirectional = true};
  back_alone.positions = T5Buckets{.bidirectional = false};
  const Encoder encoder(Params(own) / "encoder", {.block = both_ways});
  const Decoder decoder(Params(own) / "decoder", {.block = back_alone});

  const TokenBatch tokens = token_batch({{3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 3, 4, 5}});
  const Tensor table = store->values().at("embedding.weight"), x = empty({20, 16});
  for (int64_t r = 0; r < 20; ++r) {
    for (int64_t c = 0; c < 16; ++c)
      x.data<float>()[r * 16 + c] = static_cast<float>(4 * table.item({static_cast<int64_t>(tokens.ids.item({r})), c}));
  }
  Pass pass = Pass::inference();
  const EncoderOutput memory{encoder(x, tokens.at, pass), tokens.at};
  EXPECT_LT(error_against(model.encode(tokens, pass).rows, memory.rows), 1e-5);
  EXPECT_LT(error_against(model.decode(tokens, memory, pass), decoder(x, tokens.at, memory, pass)), 1e-5);
}

TEST(TransformerParts, SinusoidsAreAddedToScaledEmbeddings) {
  const TransformerConfig config{.vocabulary = 5,
                                 .width = 16,
                                 .heads = 2,
                                 .feed_forward = 4,
                                 .encoder_layers = 0,
                                 .decoder_layers = 0,
                                 .dropout = 0};
  const auto store = std::make_shared<ParamStore>();
  const Transformer model(config, store);
  const Tensor table = store->values().at("embedding.weight"), positions = sinusoidal_positions(3, 16);
  Pass pass = Pass::inference();
  const Tensor rows = model.encode(token_batch({{4, 2, 4}}), pass).rows;
  const std::array<int64_t, 3> ids{4, 2, 4};
  for (int64_t r = 0; r < 3; ++r) {
    std::array<double, 16> row{};
    double mean = 0, square = 0;
    for (int64_t c = 0; c < 16; ++c) {
      row[c] = 4 * table.item({ids[r], c}) + positions.item({r, c});  // √16 is 4
      mean += row[c] / 16;
      square += row[c] * row[c] / 16;
    }
    for (int64_t c = 0; c < 16; ++c)
      EXPECT_NEAR(rows.item({r, c}), (row[c] - mean) / std::sqrt(square - mean * mean + 1e-5), 1e-5);
  }
}

// A step over kept keys loses gradients; where a tape is open, it says so.
TEST(TransformerParts, StepsOverKeptKeysRefuseATape) {
  const auto store = std::make_shared<ParamStore>();
  const Transformer model(
      {.vocabulary = 8, .width = 8, .heads = 2, .feed_forward = 8, .encoder_layers = 1, .decoder_layers = 1}, store);
  Pass pass = Pass::inference();
  const EncoderOutput memory = model.encode(token_batch({{3, 4}}), pass);
  AttentionState state = model.begin(memory, 64, pass);
  const Tape tape;
  EXPECT_TRUE(refusal_of([&] { model.step(state, {1}, pass); }).says("detach"));
}

}  // namespace
}  // namespace mh
