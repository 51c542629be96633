// linear_top_k against log-probabilities in double: on every rung, with ties, crowds, extremes and what is not finite.
#include "multihead/ops/products/linear_top_k.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "multihead/base/error.h"
#include "multihead/ops/products/matmul.h"
#include "tests/harness/rungs.h"
#include "tests/ops/compare.h"

namespace mh {
namespace {

using test::same_bits;

class LinearTopK : public testing::TestWithParam<harness::Step> {
 protected:
  harness::Scope scope_{GetParam()};
};

Tensor scaled(const Tensor& x, double factor) {
  const Tensor out = x.contiguous().clone();
  for (int64_t n = 0; n < out.count(); ++n) out.data<float>()[n] = static_cast<float>(out.data<float>()[n] * factor);
  return out;
}

double largest(const float* row, int64_t n) {
  double most = 0;
  for (int64_t c = 0; c < n; ++c) most = std::max<double>(most, std::abs(row[c]));
  return most;
}

// The unit of a row's integers: a length of 46,000, or less where an element would pass 16 bits.
double unit_of(const float* row, int64_t n) {
  double squares = 0;
  for (int64_t c = 0; c < n; ++c) squares += static_cast<double>(row[c]) * row[c];
  return std::max(std::sqrt(squares) / 46000, largest(row, n) / 32767);
}

// The chosen must be the largest products, give or take what sums of f32 leave open; log Σ exp may be off by as much as
// rounding both sides to integers can move a product.
void expect_top(const Tensor& x, const Tensor& w, int64_t k, const std::string& label) {
  const TopK found = linear_top_k(x, prepack_top_k(w), k);
  ASSERT_EQ(found.values.shape(), (Shape{x.size(0), k})) << label;
  for (int64_t r = 0; r < x.size(0); ++r) {
    std::vector<double> products;
    const int64_t depth = x.size(1);
    const float* row = x.data<float>() + r * depth;
    const double unit = unit_of(row, depth);
    double sum = 0, lengths = 0, rounding = 0;
    for (int64_t n = 0; n < w.size(0); ++n) {
      const float* column = w.data<float>() + n * depth;
      const double column_unit = unit_of(column, depth);
      double dot = 0, own = 0, other = 0, moved = 0;
      for (int64_t c = 0; c < depth; ++c) {
        const double a = row[c], b = column[c];
        dot += a * b;
        own += a * a;
        other += b * b;
        moved += 0.5 * (unit * std::abs(b) + column_unit * (std::abs(a) + 0.5 * unit));
      }
      products.push_back(dot);
      lengths = std::max(lengths, std::sqrt(own * other));
      rounding = std::max(rounding, moved);
    }
    std::vector<double> order = products;
    std::sort(order.rbegin(), order.rend());
    for (const double each : products) sum += std::exp(each - order[0]);
    const double off = 2e-6 + 1e-6 * lengths;
    for (int64_t n = 0; n < k; ++n) {
      const double wanted = order[static_cast<size_t>(n)];
      EXPECT_NEAR(found.values.item({r, n}), wanted - order[0] - std::log(sum), off + rounding)
          << label << ", row " << r;
      const auto index = static_cast<size_t>(found.indices.item({r, n}));
      ASSERT_LT(index, products.size());
      EXPECT_NEAR(products[index], wanted, off) << label << ", row " << r << ", place " << n;
    }
  }
}

TEST_P(LinearTopK, IsTheTopOfTheProducts) {
  expect_top(randn({13, 37}, 1), randn({777, 37}, 2), 5, "odd sizes");
  expect_top(randn({9, 64}, 3), scaled(randn({5000, 64}, 4), 0.1), 5, "several groups");
  expect_top(scaled(randn({3, 256}, 5), 4), scaled(randn({2500, 256}, 6), 0.3), 64, "the most");
  expect_top(randn({2, 1}, 7), randn({5, 1}, 8), 5, "one product");
  expect_top(scaled(randn({5, 32}, 9), 1e-20), randn({60, 32}, 10), 3, "tiny");
  expect_top(scaled(randn({5, 32}, 11), 40), randn({3000, 32}, 12), 4, "far apart");
}

TEST_P(LinearTopK, AFewLargeElementsLeaveTheOthersTheirBits) {
  const Tensor x = randn({6, 128}, 1), w = scaled(randn({900, 128}, 2), 0.1);
  for (int64_t r = 0; r < 6; ++r) x.data<float>()[r * 128 + 7 * r] = 60;
  for (int64_t n = 0; n < 900; n += 50) w.data<float>()[n * 128 + n % 128] = 5;
  expect_top(x, w, 5, "outliers");
}

TEST_P(LinearTopK, EqualProductsComeBySmallerIndex) {
  const Tensor x = randn({4, 40}, 1), w = randn({600, 40}, 2);
  for (const int64_t n : {100, 300, 599}) w.slice(0, n, n + 1).copy_from(w.slice(0, 17, 18));
  for (int64_t r = 0; r < 4; ++r) x.slice(0, r, r + 1).copy_from(scaled(w.slice(0, 17, 18), 2.0 + r));
  const TopK found = linear_top_k(x, prepack_top_k(w), 4);
  for (int64_t r = 0; r < 4; ++r) {
    EXPECT_EQ(found.indices.item({r, 0}), 17);
    EXPECT_EQ(found.indices.item({r, 1}), 100);
    EXPECT_EQ(found.indices.item({r, 2}), 300);
    EXPECT_EQ(found.indices.item({r, 3}), 599);
  }
}

TEST_P(LinearTopK, ACrowdOfEqualsIsRankedToo) {
  const Tensor w = randn({4100, 24}, 3);
  for (int64_t n = 1; n < 4100; ++n) w.slice(0, n, n + 1).copy_from(w.slice(0, 0, 1));
  const TopKWeights packed = prepack_top_k(w);
  const TopK all = linear_top_k(randn({3, 24}, 4), packed, 6), none = linear_top_k(zeros({2, 24}), packed, 6);
  for (int64_t n = 0; n < 6; ++n) {
    EXPECT_EQ(all.indices.item({2, n}), n);
    EXPECT_EQ(none.indices.item({1, n}), n);
    EXPECT_NEAR(none.values.item({0, n}), -std::log(4100.0), 1e-5);
  }
}

TEST_P(LinearTopK, BatchAndThreadsChangeNoBit) {
  const Tensor x = randn({150, 48}, 5), w = randn({4500, 48}, 6);
  const TopKWeights packed = prepack_top_k(w);
  set_threads(1);
  const TopK whole = linear_top_k(x, packed, 5);
  for (const int threads : {1, 3}) {
    set_threads(threads);
    for (const int64_t count : {1, 2, 7, 12, 150}) {
      const TopK some = linear_top_k(x.slice(0, 150 - count, 150), packed, 5);
      EXPECT_TRUE(same_bits(some.values, whole.values.slice(0, 150 - count, 150))) << count << " on " << threads;
      EXPECT_TRUE(same_bits(some.indices, whole.indices.slice(0, 150 - count, 150))) << count << " on " << threads;
    }
  }
}

TEST_P(LinearTopK, WhatIsNotFiniteIsComputedInFloats) {
  const Tensor x = randn({3, 16}, 7), w = randn({50, 16}, 8);
  x.data<float>()[16 + 3] = NAN;
  const TopK found = linear_top_k(x, prepack_top_k(w), 2);
  EXPECT_EQ(found.indices.item({1, 0}), -1);
  EXPECT_TRUE(std::isnan(found.values.item({1, 0})));
  EXPECT_TRUE(std::isfinite(found.values.item({2, 1})));
  w.data<float>()[5] = INFINITY;  // column 0
  const TopK theirs = top_k(matmul(x, w.transpose(0, 1)), 2), ours = linear_top_k(x, prepack_top_k(w), 2);
  EXPECT_TRUE(same_bits(ours.indices, theirs.indices));
}

INSTANTIATE_TEST_SUITE_P(Each, LinearTopK, testing::ValuesIn(harness::steps()),
                         [](const auto& info) { return info.param.name; });

TEST(LinearTopKCall, RefusesWhatDoesNotFit) {
  const TopKWeights w = prepack_top_k(randn({20, 8}, 1));
  EXPECT_THROW(linear_top_k(randn({2, 7}, 1), w, 2), Error);
  EXPECT_THROW(linear_top_k(randn({2, 8}, 1), w, 0), Error);
  EXPECT_THROW(linear_top_k(randn({2, 8}, 1), w, 21), Error);
  EXPECT_THROW(linear_top_k(randn({2, 8}, 1, DType::bf16), w, 2), Error);
  EXPECT_THROW(linear_top_k(randn({2, 8}, 1), {}, 2), Error);
  EXPECT_THROW(prepack_top_k(randn({20}, 1)), Error);
  EXPECT_THROW(prepack_top_k(randn({20, 8}, 1, DType::bf16)), Error);
  EXPECT_EQ(linear_top_k(randn({0, 8}, 1), w, 2).values.size(0), 0);
}

}  // namespace
}  // namespace mh
