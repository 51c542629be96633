// Rotary positions: the formula in double, both pairings, and the gradient as the turn back.
#include "multihead/ops/rows/rope.h"

#include <gtest/gtest.h>

#include <cmath>

#include "multihead/autograd/tape.h"

namespace mh {
namespace {

TEST(Rope, FollowsItsFormula) {
  const Tensor x = randn({3, 2, 10}, 1), positions = tensor<int32_t>({0, 5, 100}, {3});
  for (const bool interleaved : {false, true}) {
    const Tensor y = rope(x, positions, {.interleaved = interleaved, .width = 8});
    for (int64_t r = 0; r < 3; ++r) {
      for (int64_t h = 0; h < 2; ++h) {
        for (int64_t n = 0; n < 4; ++n) {
          const int64_t a = interleaved ? 2 * n : n, b = interleaved ? 2 * n + 1 : n + 4;
          const double angle = positions.item({r}) * std::pow(10000.0, -static_cast<double>(n) / 4);
          const double xa = x.item({r, h, a}), xb = x.item({r, h, b});
          EXPECT_NEAR(y.item({r, h, a}), xa * std::cos(angle) - xb * std::sin(angle), 1e-5);
          EXPECT_NEAR(y.item({r, h, b}), xb * std::cos(angle) + xa * std::sin(angle), 1e-5);
        }
        for (int64_t d = 8; d < 10; ++d) EXPECT_EQ(y.item({r, h, d}), x.item({r, h, d}));
      }
    }
  }
}

// Tables of angles grow with the positions: the last row of one, the first row past it, and positions of no table.
TEST(Rope, FollowsItsFormulaWhereTablesEnd) {
  const float base = 4321;  // a table of its own
  for (const int32_t position : {0, 63, 64, 127, 128, 129, 256, 300, 65535, 65536, 65537, 1 << 20}) {
    for (const bool interleaved : {false, true}) {
      const Tensor y =
          rope(full({1, 1, 4}, 1), tensor<int32_t>({position}, {1}), {.base = base, .interleaved = interleaved});
      for (int64_t n = 0; n < 2; ++n) {
        const double angle = position * std::pow(4321.0, -static_cast<double>(n) / 2);
        const int64_t a = interleaved ? 2 * n : n, b = interleaved ? 2 * n + 1 : n + 2;
        EXPECT_NEAR(y.item({0, 0, a}), std::cos(angle) - std::sin(angle), 1e-5) << position;
        EXPECT_NEAR(y.item({0, 0, b}), std::cos(angle) + std::sin(angle), 1e-5) << position;
      }
    }
  }
}

TEST(Rope, GradientIsTheTurnBack) {
  const Tensor x = parameter(randn({4, 2, 6}, 1)), positions = tensor<int32_t>({0, 1, 2, 3}, {4});
  Tape tape;
  const Tensor y = rope(x, positions);
  Gradients sums;
  tape.backward({y}, {y.detach()}, sums);  // turned there and back
  for (int64_t i = 0; i < x.count(); ++i) EXPECT_NEAR(sums.of(x).data<float>()[i], x.data<float>()[i], 1e-5);
}

TEST(Rope, RefusesWhatDoesNotFit) {
  const Tensor x = randn({3, 2, 6}, 1);
  EXPECT_THROW(rope(x, tensor<int32_t>({0, 1}, {2})), Error);
  EXPECT_THROW(rope(x, tensor<int32_t>({0, 1, -1}, {3})), Error);
  EXPECT_THROW(rope(x, tensor<int32_t>({0, 1, 2}, {3}), {.width = 5}), Error);
  EXPECT_THROW(rope(x, tensor<int32_t>({0, 1, 2}, {3}), {.width = 8}), Error);
  EXPECT_THROW(rope(x.to(DType::i32), tensor<int32_t>({0, 1, 2}, {3})), Error);
}

}  // namespace
}  // namespace mh
