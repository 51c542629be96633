// Rows of tokens, positions and types: the formula, the offset of positions, and what is refused.
#include "multihead/nn/input_embedding.h"

#include <cmath>

#include "tests/harness/refusal.h"
#include "tests/nn/golden.h"

namespace mh {
namespace {

Tensor ints(const std::vector<int32_t>& values) {
  return tensor<int32_t>(values, {static_cast<int64_t>(values.size())});
}

TEST(InputEmbedding, AddsScaledTokensPositionsAndTypes) {
  ParamStore store;
  const InputEmbedding reader(Params(store) / "e", {.vocabulary = 7,
                                                    .width = 4,
                                                    .types = 2,
                                                    .positions = InputEmbeddingOptions::Positions::learned,
                                                    .max_positions = 3,
                                                    .offset = 2,
                                                    .scale = 3});
  ASSERT_EQ(store.all().size(), 3u);
  const Tensor tokens = store.all()[0]->value, positions = store.all()[1]->value, types = store.all()[2]->value;
  EXPECT_EQ(positions.shape(), (Shape{5, 4}));
  Pass pass = Pass::inference();
  const Tensor x = reader(ints({6, 1, 1}), ints({0, 1, 0}), ints({0, 1, 1}), pass),
               plain = reader(ints({6}), ints({0}), {}, pass);
  const int64_t id[] = {6, 1, 1}, position[] = {0, 1, 0}, type[] = {0, 1, 1};
  for (int64_t n = 0; n < 3; ++n) {
    for (int64_t c = 0; c < 4; ++c)
      EXPECT_NEAR(x.item({n, c}),
                  3 * tokens.item({id[n], c}) + positions.item({position[n] + 2, c}) + types.item({type[n], c}), 1e-6);
  }
  for (int64_t c = 0; c < 4; ++c) EXPECT_EQ(plain.item({0, c}), x.item({0, c})) << "types that are not given are 0";
  const auto refuses = [&](const Tensor& ids, const Tensor& at, const Tensor& kinds) {
    return refusal_of([&] { reader(ids, at, kinds, pass); }).says("expected 0 or more and below");
  };
  EXPECT_TRUE(refuses(ints({7}), ints({0}), {}));
  EXPECT_TRUE(refuses(ints({-1}), ints({0}), {}));
  EXPECT_TRUE(refuses(ints({1}), ints({3}), {}));
  EXPECT_TRUE(refuses(ints({1}), ints({0}), ints({2})));
}

TEST(InputEmbedding, SinusoidsBeginAtTheOffset) {
  ParamStore store;
  const InputEmbedding reader(Params(store) / "e", {.vocabulary = 3,
                                                    .width = 6,
                                                    .positions = InputEmbeddingOptions::Positions::sinusoidal,
                                                    .max_positions = 4,
                                                    .offset = 2,
                                                    .sinusoids = SinusoidLayout::spread});
  Pass pass = Pass::inference();
  const Tensor x = reader(ints({1}), ints({3}), {}, pass), table = store.all()[0]->value;
  for (int64_t c = 0; c < 6; ++c) {
    const double angle = 5 / std::pow(10000.0, static_cast<double>(c % 3) / 2);
    EXPECT_NEAR(x.item({0, c}) - table.item({1, c}), c < 3 ? std::sin(angle) : std::cos(angle), 1e-6);
  }
}

TEST(InputEmbedding, TablesSharedWithAnotherAreNotMadeAgain) {
  ParamStore store;
  const InputEmbedding first(Params(store) / "a", {.vocabulary = 3, .width = 2});
  const InputEmbedding second(Params(store) / "b", {.vocabulary = 3, .width = 2}, &first.tokens());
  EXPECT_EQ(store.all().size(), 1u);
  EXPECT_EQ(&second.tokens(), &first.tokens());
}

TEST(InputEmbedding, NarrowRowsAreBroughtToTheModelsWidth) {
  ParamStore store;
  const InputEmbedding reader(Params(store) / "e", {.vocabulary = 3, .width = 2, .output = 5, .norm = Norm::Options{}});
  Pass pass = Pass::inference();
  EXPECT_EQ(reader(ints({0, 2}), ints({0, 1}), {}, pass).shape(), (Shape{2, 5}));
  EXPECT_EQ(store.all().back()->name, "e.projection.bias");
}

}  // namespace
}  // namespace mh
