// top_k against sorting, ties, -inf and NaN.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "multihead/ops/rows/softmax.h"
#include "tests/harness/rungs.h"
#include "tests/ops/compare.h"

namespace mh {
namespace {

using test::numbers;
using test::same_bits;

// Numbers with many equal ones.
Tensor coarse(const Shape& shape, uint64_t seed, DType type) {
  const Tensor x = randn(shape, seed);
  for (int64_t n = 0; n < x.count(); ++n) x.data<float>()[n] = std::round(4 * x.data<float>()[n]) / 4;
  return x.to(type);
}

void expect_sorted(const Tensor& x, int64_t k) {
  const TopK got = top_k(x, k);
  const std::vector<double> all = numbers(x), values = numbers(got.values);
  const int64_t width = x.size(-1);
  for (int64_t row = 0; row < x.count() / width; ++row) {
    const double* at = all.data() + row * width;
    std::vector<int32_t> order(static_cast<size_t>(width));
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) { return at[a] > at[b]; });
    double sum = 0;
    for (int64_t c = 0; c < width; ++c) sum += std::exp(at[c]);
    for (int64_t n = 0; n < k; ++n) {
      ASSERT_EQ(got.indices.data<int32_t>()[row * k + n], order[static_cast<size_t>(n)])
          << "row " << row << ", place " << n;
      // Two subtractions and a logarithm of a sum of `width` terms.
      ASSERT_NEAR(values[static_cast<size_t>(row * k + n)], at[order[static_cast<size_t>(n)]] - std::log(sum), 2e-6);
    }
  }
}

TEST(TopK, AgreesWithSorting) {
  for (const harness::Step& step : harness::steps()) {
    const harness::Scope scope(step);
    for (const DType type : {DType::f32, DType::bf16, DType::f16}) {
      for (const int64_t width : {1, 4, 16, 17, 63, 64, 65, 1000}) {
        for (const int64_t k : {int64_t{1}, std::min<int64_t>(5, width), std::min<int64_t>(64, width)}) {
          expect_sorted(coarse(Shape{3, width}, static_cast<uint64_t>(width), type), k);
        }
      }
    }
  }
}

TEST(TopK, RisingRowsReplaceEveryPlace) {
  const Tensor x = empty(Shape{1, 300});
  for (int64_t n = 0; n < 300; ++n) x.data<float>()[n] = 0.01f * static_cast<float>(n);
  expect_sorted(x, 7);
}

TEST(TopK, MinusInfinityIsChosenLastAndNaNNever) {
  const float inf = INFINITY;
  for (const harness::Step& step : harness::steps()) {
    const harness::Scope scope(step);
    const TopK masked = top_k(tensor<float>({-inf, 2, -inf, 1, -inf}, Shape{5}), 4);
    EXPECT_TRUE(same_bits(masked.indices, tensor<int32_t>({1, 3, 0, 2}, Shape{4})));
    EXPECT_EQ(masked.values.item({2}), -inf);
    const TopK broken = top_k(tensor<float>({NAN, 2, NAN, 1}, Shape{4}), 3);
    EXPECT_TRUE(same_bits(broken.indices, tensor<int32_t>({1, 3, -1}, Shape{3})));
    for (int64_t n = 0; n < 3; ++n) EXPECT_TRUE(std::isnan(broken.values.item({n})));
  }
}

TEST(TopK, BitsDoNotDependOnThreadsOrCompanions) {
  const Tensor x = randn(Shape{40, 700}, 3);
  set_threads(1);
  const TopK alone = top_k(x, 4);
  set_threads(7);
  const TopK shared = top_k(x, 4);
  EXPECT_TRUE(same_bits(alone.values, shared.values) && same_bits(alone.indices, shared.indices));
  EXPECT_TRUE(same_bits(top_k(x.select(0, 17), 4).values, alone.values.select(0, 17)));
}

}  // namespace
}  // namespace mh
