// AdamW against its formula in double precision, and the other passes of an optimiser.
#include "multihead/ops/update.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/harness/rungs.h"
#include "tests/ops/compare.h"

namespace mh {
namespace {

using test::numbers;
using test::same_bits;

constexpr int64_t kSizes[] = {0, 1, 15, 16, 17, 100, 40000};

struct State {
  Tensor w, m, v, g;
};

State state_of(int64_t count, DType type) {
  const Shape shape{count};
  State s{randn(shape, 1), randn(shape, 2), randn(shape, 3), randn(shape, 4, type)};
  for (int64_t n = 0; n < count; ++n) s.v.data<float>()[n] = std::abs(s.v.data<float>()[n]);
  return s;
}

TEST(Update, AdamwFollowsItsFormula) {
  const AdamwOptions o{
      .rate = 0.01f, .beta1 = 0.8f, .beta2 = 0.95f, .eps = 1e-6f, .decay = 0.1f, .step = 3, .gradient_scale = 0.5f};
  const double b1 = static_cast<double>(o.beta1), b2 = static_cast<double>(o.beta2), rate = static_cast<double>(o.rate);
  for (const harness::Step& step : harness::steps()) {
    const harness::Scope scope(step);
    for (const DType type : {DType::f32, DType::bf16}) {
      for (const int64_t count : kSizes) {
        const State s = state_of(count, type);
        const std::vector<double> w = numbers(s.w), m = numbers(s.m), v = numbers(s.v), g = numbers(s.g);
        const Tensor copy = empty(Shape{count}, DType::bf16);
        adamw({s.w, s.m, s.v, copy}, s.g, o);
        EXPECT_TRUE(same_bits(copy, s.w.to(DType::bf16)));
        const std::vector<double> got = numbers(s.w), got_m = numbers(s.m), got_v = numbers(s.v);
        for (size_t n = 0; n < w.size(); ++n) {
          const double d = 0.5 * g[n], first = b1 * m[n] + (1 - b1) * d, second = b2 * v[n] + (1 - b2) * d * d;
          const double move =
              first / (1 - std::pow(b1, 3)) / (std::sqrt(second / (1 - std::pow(b2, 3))) + static_cast<double>(o.eps));
          const double wanted = w[n] * (1 - rate * static_cast<double>(o.decay)) - rate * move;
          // Roundings of f32: three on the way to m, four to v, a dozen to the move, three to w.
          EXPECT_NEAR(got_m[n], first, 4 * 0x1p-24 * (std::abs(b1 * m[n]) + std::abs(d)));
          EXPECT_NEAR(got_v[n], second, 6 * 0x1p-24 * second);
          const double sizes = std::abs(b1 * m[n]) + std::abs(d);
          ASSERT_NEAR(got[n], wanted,
                      3 * 0x1p-24 * std::abs(w[n]) +
                          12 * 0x1p-24 * rate * std::abs(move) * (1 + sizes / std::max(std::abs(first), 1e-30)))
              << n;
        }
      }
    }
  }
}

TEST(Update, SumOfSquaresIsThatOfDoubles) {
  for (const harness::Step& step : harness::steps()) {
    const harness::Scope scope(step);
    for (const DType type : {DType::f32, DType::bf16, DType::f16}) {
      for (const int64_t count : kSizes) {
        const Tensor x = randn(Shape{count}, 7, type);
        double wanted = 0;
        for (const double each : numbers(x)) wanted += each * each;
        set_threads(1);
        const double alone = sum_of_squares(x);
        EXPECT_NEAR(alone, wanted, 1e-13 * wanted);
        set_threads(7);
        EXPECT_EQ(sum_of_squares(x), alone);
      }
    }
  }
}

TEST(Update, SumOfSquaresDoesNotOverflowF32) {
  EXPECT_EQ(sum_of_squares(full(Shape{4}, 0x1p100)), 4 * 0x1p200);
  EXPECT_TRUE(std::isnan(sum_of_squares(full(Shape{4}, NAN))));
}

TEST(Update, LerpAndAccumulate) {
  for (const harness::Step& step : harness::steps()) {
    const harness::Scope scope(step);
    for (const int64_t count : kSizes) {
      const Tensor y = randn(Shape{count}, 1), x = randn(Shape{count}, 2), was = y.clone();
      lerp(y, x, 0.25f);
      for (int64_t n = 0; n < count; ++n) {
        const float a = was.data<float>()[n], b = x.data<float>()[n];
        EXPECT_NEAR(y.data<float>()[n], a + 0.25f * (b - a), 0x1p-22 * (std::abs(a) + std::abs(b)));
      }
      for (const auto& [to, from] :
           {std::pair{DType::f32, DType::bf16}, {DType::bf16, DType::f32}, {DType::f16, DType::f16}}) {
        const Tensor sum = was.to(to).clone(), part = x.to(from);
        accumulate(sum, part);
        const Tensor a = was.to(to).to(DType::f32), b = part.to(DType::f32), wanted = empty(Shape{count});
        for (int64_t n = 0; n < count; ++n) wanted.data<float>()[n] = a.data<float>()[n] + b.data<float>()[n];
        EXPECT_TRUE(same_bits(sum, wanted.to(to)));
      }
    }
  }
}

}  // namespace
}  // namespace mh
