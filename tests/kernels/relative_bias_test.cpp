// Biases over distances.
#include "multihead/kernels/relative_bias.h"

#include <gtest/gtest.h>

#include <vector>

#include "multihead/kernels/table.h"
#include "multihead/tensor/tensor.h"

namespace mh::kernels {
namespace {

void forward(const RelativeBiasForwardArgs& args) {
  kernels_of(Device{}).relative_bias_forward(args, queue_of(Device{}));
}
void backward(const RelativeBiasBackwardArgs& args) {
  kernels_of(Device{}).relative_bias_backward(args, queue_of(Device{}));
}

TEST(RelativeBias, AlibiFallsWithTheDistanceEitherWay) {
  const Tensor slopes = tensor<float>({0.5f, 2.0f}, {2});
  std::vector<float> relative(2 * 5);
  forward({.slopes = slopes.view(), .distances = {-2, 5}, .relative = relative.data()});
  EXPECT_EQ(relative, (std::vector<float>{-1, -0.5f, 0, -0.5f, -1, -4, -2, 0, -2, -4}));
}

TEST(RelativeBias, AlibiGradientWeighsByDistance) {
  const Tensor dslopes = zeros({2});
  const std::vector<float> drelative{1, 10, 100, 1000, 2, 20, 200, 2000};
  backward({.drelative = drelative.data(), .dslopes = dslopes.view(), .distances = {-1, 4}});
  EXPECT_EQ(dslopes.item({0}), -(1 + 100 + 2000));
  EXPECT_EQ(dslopes.item({1}), -(2 + 200 + 4000));
}

// As the T5 models' own code sorts distances into 32 buckets up to 128.
TEST(RelativeBias, BucketsAreThoseOfT5) {
  const T5Buckets both{32, true, 128}, one{32, false, 128};
  EXPECT_EQ(t5_bucket(both, 0), 0);
  EXPECT_EQ(t5_bucket(both, 7), 7);
  EXPECT_EQ(t5_bucket(both, 8), 8);
  EXPECT_EQ(t5_bucket(both, 11), 8);
  EXPECT_EQ(t5_bucket(both, 12), 9);
  EXPECT_EQ(t5_bucket(both, 16), 10);
  EXPECT_EQ(t5_bucket(both, 127), 15);
  EXPECT_EQ(t5_bucket(both, 1 << 30), 15);
  EXPECT_EQ(t5_bucket(both, -1), 17);
  EXPECT_EQ(t5_bucket(both, -200), 31);
  EXPECT_EQ(t5_bucket(one, -5), 0);
  EXPECT_EQ(t5_bucket(one, 15), 15);
  EXPECT_EQ(t5_bucket(one, 16), 16);
  EXPECT_EQ(t5_bucket(one, 32), 21);
  EXPECT_EQ(t5_bucket(one, 1000), 31);
}

TEST(RelativeBias, BucketsNeverFallAndFillTheTable) {
  for (const T5Buckets& buckets : {T5Buckets{32, false, 128}, T5Buckets{8, false, 20}, T5Buckets{2, false, 3}}) {
    int64_t last = 0;
    for (int64_t d = 0; d < 2 * buckets.max_distance; ++d) {
      const int64_t bucket = t5_bucket(buckets, d);
      EXPECT_GE(bucket, last);
      EXPECT_LT(bucket, buckets.count);
      last = bucket;
    }
    EXPECT_EQ(last, buckets.count - 1);
  }
}

TEST(RelativeBias, T5GradientIsTheForwardTurnedRound) {
  const T5Buckets buckets{8, true, 16};
  const Distances distances{-20, 50};
  const Tensor table = randn({8, 3}, 1), dtable = zeros({8, 3}), drelative = randn({3, 50}, 2);
  std::vector<float> relative(3 * 50);
  forward({.table = table.view(), .buckets = buckets, .distances = distances, .relative = relative.data()});
  backward({.drelative = drelative.data<float>(), .dtable = dtable.view(), .buckets = buckets, .distances = distances});
  // The forward is linear: Σ drelative · relative = Σ dtable · table.
  double one = 0, other = 0;
  for (size_t n = 0; n < relative.size(); ++n) one += static_cast<double>(relative[n]) * drelative.data<float>()[n];
  for (int n = 0; n < 24; ++n) other += static_cast<double>(table.data<float>()[n]) * dtable.data<float>()[n];
  EXPECT_NEAR(one, other, 1e-4);
}

}  // namespace
}  // namespace mh::kernels
