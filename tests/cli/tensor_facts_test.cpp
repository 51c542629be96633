// The facts of a tensor: by hand, where numbers are missing, and where squares would cancel.
#include "cli/tensor_facts.h"

#include <gtest/gtest.h>

#include <cmath>

namespace mh::cli {
namespace {

TEST(TensorFacts, AreThoseOfTheFiniteNumbers) {
  const TensorFacts facts = tensor_facts(tensor<float>({1, NAN, 3, INFINITY, -INFINITY, 2}, {2, 3}));
  EXPECT_EQ(facts.nan, 1);
  EXPECT_EQ(facts.infinite, 2);
  EXPECT_EQ(facts.least, 1);
  EXPECT_EQ(facts.most, 3);
  EXPECT_EQ(facts.mean, 2);
  EXPECT_DOUBLE_EQ(facts.deviation, std::sqrt(2.0 / 3));
}

TEST(TensorFacts, HoldForEveryType) {
  for (const DType dtype :
       {DType::f32, DType::bf16, DType::f16, DType::f64, DType::i8, DType::u8, DType::i32, DType::i64}) {
    const TensorFacts facts = tensor_facts(tensor<float>({2, 4, 9}, {3}).to(dtype));
    EXPECT_EQ(facts.least, 2) << name(dtype);
    EXPECT_EQ(facts.most, 9) << name(dtype);
    EXPECT_EQ(facts.mean, 5) << name(dtype);
  }
  EXPECT_EQ(tensor_facts(full({4}, 1, DType::boolean)).mean, 1);
}

TEST(TensorFacts, OfNoNumbersAreNone) {
  EXPECT_TRUE(std::isnan(tensor_facts(empty({0, 3})).mean));
  EXPECT_TRUE(std::isnan(tensor_facts(full({3}, NAN)).least));
}

TEST(TensorFacts, ASmallSpreadAroundALargeMeanIsKept) {
  EXPECT_DOUBLE_EQ(tensor_facts(tensor<double>({1e9 - 1, 1e9 + 1}, {2})).deviation, 1);
}

TEST(TensorFacts, SeeThroughStrides) {
  const Tensor x = tensor<float>({1, 2, 3, 100, 200, 300}, {2, 3}).select(0, 0);
  EXPECT_EQ(tensor_facts(x).most, 3);
}

}  // namespace
}  // namespace mh::cli
