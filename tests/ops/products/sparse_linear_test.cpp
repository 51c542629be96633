// sparse_linear against sums in double on every rung: few and many zeros, sizes around the vectors, and the same bits
// however many rows and threads.
#include "multihead/ops/products/sparse_linear.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "multihead/base/error.h"
#include "tests/harness/rungs.h"
#include "tests/ops/compare.h"

namespace mh {
namespace {

using test::same_bits;

class SparseLinear : public testing::TestWithParam<harness::Step> {
 protected:
  harness::Scope scope_{GetParam()};
};

// N(0, 1), of which all below `bar` are 0.
Tensor thinned(const Shape& shape, uint64_t seed, float bar) {
  const Tensor x = randn(shape, seed);
  for (int64_t n = 0; n < x.count(); ++n) {
    if (x.data<float>()[n] < bar) x.data<float>()[n] = 0;
  }
  return x;
}

void expect_product(const Tensor& x, int64_t n, const std::string& label) {
  const int64_t m = x.size(0), k = x.size(1);
  const Tensor w = randn({n, k}, 5), bias = randn({n}, 6), residual = randn({m, n}, 7);
  const Tensor y = sparse_linear(x, prepack_sparse(w), bias, residual), plain = sparse_linear(x, prepack_sparse(w));
  ASSERT_EQ(y.shape(), (Shape{m, n})) << label;
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      double sum = 0, size = 1;
      for (int64_t c = 0; c < k; ++c) {
        const double product = x.item({i, c}) * w.item({j, c});
        sum += product;
        size += std::abs(product);
      }
      // One rounding for each of the k sums.
      const double off = static_cast<double>(k + 4) * 0x1p-24 * size;
      EXPECT_NEAR(plain.item({i, j}), sum, off) << label << " at " << i << ", " << j;
      EXPECT_NEAR(y.item({i, j}), sum + bias.item({j}) + residual.item({i, j}), off + 4 * 0x1p-22) << label;
    }
  }
}

TEST_P(SparseLinear, IsTheProductWhateverIsZero) {
  expect_product(thinned({9, 70}, 1, 1.0F), 130, "mostly zeros");
  expect_product(thinned({4, 64}, 2, -10), 64, "no zero");
  expect_product(zeros({5, 33}), 17, "nothing else");
  expect_product(thinned({1, 1}, 3, -10), 1, "one product");
  expect_product(thinned({131, 15}, 4, 0), 63, "two blocks");
  expect_product(thinned({3, 17}, 8, 0.5F), 65, "one past a panel");
}

TEST_P(SparseLinear, BatchAndThreadsChangeNoBit) {
  const Tensor x = thinned({300, 96}, 1, 0.8F), w = randn({100, 96}, 2), bias = randn({100}, 3);
  const SparseWeights packed = prepack_sparse(w);
  set_threads(1);
  const Tensor whole = sparse_linear(x, packed, bias);
  for (const int threads : {1, 3}) {
    set_threads(threads);
    for (const int64_t count : {1, 2, 3, 5, 64, 299}) {
      const Tensor some = sparse_linear(x.slice(0, 300 - count, 300), packed, bias);
      EXPECT_TRUE(same_bits(some, whole.slice(0, 300 - count, 300))) << count << " on " << threads;
    }
  }
}

TEST_P(SparseLinear, RowsMayLieApart) {
  const Tensor x = thinned({40, 30}, 1, 0), w = randn({20, 30}, 2);
  const SparseWeights packed = prepack_sparse(w);
  const Tensor turned = x.transpose(0, 1).contiguous().transpose(0, 1);
  EXPECT_TRUE(same_bits(sparse_linear(turned, packed), sparse_linear(x, packed)));
  EXPECT_TRUE(same_bits(sparse_linear(x, prepack_sparse(w.transpose(0, 1).contiguous().transpose(0, 1))),
                        sparse_linear(x, packed)));
}

TEST_P(SparseLinear, ZeroLeavesOutWhatIsNotFinite) {
  const Tensor x = zeros({1, 20}), w = randn({10, 20}, 2);
  x.data<float>()[3] = 2;
  const Tensor before = sparse_linear(x, prepack_sparse(w));
  for (int64_t n = 0; n < 10; ++n) w.data<float>()[n * 20 + 7] = std::numeric_limits<float>::infinity();
  EXPECT_TRUE(same_bits(sparse_linear(x, prepack_sparse(w)), before));
}

TEST_P(SparseLinear, NaNOfARowStaysInIt) {
  const Tensor x = thinned({6, 20}, 1, 0);
  const SparseWeights w = prepack_sparse(randn({10, 20}, 2));
  const Tensor before = sparse_linear(x, w);
  x.data<float>()[2 * 20 + 3] = NAN;
  const Tensor y = sparse_linear(x, w);
  const Tensor alone = sparse_linear(x.slice(0, 2, 3), w);
  for (int64_t n = 0; n < 10; ++n) EXPECT_TRUE(std::isnan(y.item({2, n})) && std::isnan(alone.item({0, n})));
  EXPECT_TRUE(same_bits(y.slice(0, 0, 2), before.slice(0, 0, 2)));
  EXPECT_TRUE(same_bits(y.slice(0, 3, 6), before.slice(0, 3, 6)));
}

INSTANTIATE_TEST_SUITE_P(Each, SparseLinear, testing::ValuesIn(harness::steps()),
                         [](const auto& info) { return info.param.name; });

TEST(SparseLinearCall, RefusesWhatDoesNotFit) {
  const SparseWeights w = prepack_sparse(randn({20, 8}, 1));
  EXPECT_THROW(sparse_linear(randn({2, 7}, 1), w), Error);
  EXPECT_THROW(sparse_linear(randn({8}, 1), w), Error);
  EXPECT_THROW(sparse_linear(randn({2, 8}, 1), w, randn({19}, 1)), Error);
  EXPECT_THROW(sparse_linear(randn({2, 8}, 1), w, {}, randn({2, 19}, 1)), Error);
  EXPECT_THROW(sparse_linear(randn({2, 8}, 1, DType::bf16), w), Error);
  EXPECT_THROW(sparse_linear(randn({2, 8}, 1), {}), Error);
  EXPECT_THROW(prepack_sparse(randn({20}, 1)), Error);
  EXPECT_THROW(prepack_sparse(randn({20, 8}, 1, DType::bf16)), Error);
  EXPECT_EQ(sparse_linear(randn({0, 8}, 1), w).size(0), 0);
}

}  // namespace
}  // namespace mh
