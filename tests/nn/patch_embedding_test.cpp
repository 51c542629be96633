// Patches by lines, extra rows first, positions added: beside loops over pixels.
#include "multihead/nn/patch_embedding.h"

#include "tests/harness/refusal.h"
#include "tests/nn/golden.h"

namespace mh {
namespace {

TEST(PatchEmbedding, MultipliesFlattenedPatches) {
  const PatchEmbeddingOptions o{
      .height = 4, .width = 6, .patch_height = 2, .patch_width = 3, .channels = 2, .output = 5, .extra = 2};
  ParamStore store;
  const PatchEmbedding reader(Params(store) / "p", o);
  const auto param = [&](const std::string& name) {
    for (const auto& each : store.all())
      if (each->name == "p." + name) return each->value.detach();
    return Tensor();
  };
  param("patches.bias").copy_from(randn({5}, 9));
  const Tensor pixels = randn({2, 2, 4, 6}, 1), w = param("patches.weight");
  Pass pass = Pass::inference();
  const Tensor x = reader(pixels, pass);
  ASSERT_EQ(x.shape(), (Shape{2 * 6, 5}));
  for (int64_t b = 0; b < 2; ++b) {
    for (int64_t row = 0; row < 6; ++row) {
      for (int64_t c = 0; c < 5; ++c) {
        double sum = param("positions").item({row, c});
        if (row < 2) sum += param("extra." + std::to_string(row)).item({0, c});
        const int64_t down = (row - 2) / 2, across = (row - 2) % 2;
        for (int64_t k = 0; row >= 2 && k < 12; ++k)
          sum += w.item({c, k}) * pixels.item({b, k / 6, 2 * down + k / 3 % 2, 3 * across + k % 3});
        if (row >= 2) sum += param("patches.bias").item({c});
        EXPECT_NEAR(x.item({b * 6 + row, c}), sum, 1e-5);
      }
    }
  }
  EXPECT_TRUE(refusal_of([&] { reader(randn({1, 2, 6, 4}, 1), pass); }).says("expected f32 (B, 2, 4, 6)"));
}

TEST(PatchEmbedding, PatchesThatDoNotFillTheImageAreRefused) {
  const auto refuses = [](const PatchEmbeddingOptions& o) {
    ParamStore store;
    return refusal_of([&] { PatchEmbedding(Params(store), o); }).kind == ErrorKind::invalid_argument;
  };
  EXPECT_TRUE(refuses({.height = 5, .width = 6, .patch_height = 2, .patch_width = 2}));
  EXPECT_TRUE(refuses({.height = 4, .width = 6, .patch_height = 2, .patch_width = 0}));
  EXPECT_TRUE(refuses({.height = int64_t{1} << 31, .width = int64_t{1} << 31, .patch_height = 1, .patch_width = 1}));
}

}  // namespace
}  // namespace mh
