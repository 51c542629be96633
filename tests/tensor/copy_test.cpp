// Copies between strides and types.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "multihead/base/parallel.h"
#include "multihead/tensor/convert.h"
#include "multihead/tensor/tensor.h"
#include "tests/tensor/counting.h"

namespace mh {
namespace {

TEST(Copy, StridedToStrided) {
  const Tensor from = counting({3, 5, 4}).transpose(0, 2).slice(1, 1, 4);
  const Tensor to = zeros({9, 4, 3}).slice(0, 2, 5).transpose(0, 1).slice(0, 1, 4);
  ASSERT_TRUE(to.shape() == Shape({3, 3, 3}));
  const Tensor source = from.slice(0, 0, 3);
  to.copy_from(source);
  for (int64_t i = 0; i < 3; ++i) {
    for (int64_t j = 0; j < 3; ++j) {
      for (int64_t k = 0; k < 3; ++k) ASSERT_EQ(to.item({i, j, k}), source.item({i, j, k}));
    }
  }
}

TEST(Copy, LeavesWhatLiesBetweenAlone) {
  const Tensor whole = full({4, 4}, -1);
  whole.slice(1, 1, 3).copy_from(counting({4, 2}));
  EXPECT_EQ(whole.item({2, 0}), -1);
  EXPECT_EQ(whole.item({2, 1}), 4);
  EXPECT_EQ(whole.item({2, 2}), 5);
  EXPECT_EQ(whole.item({2, 3}), -1);
}

TEST(Copy, LargeCopiesAreCutAndComplete) {
  const int before = threads();
  set_threads(3);
  for (const Shape& shape : {Shape({100001}), Shape({1000, 101}), Shape({3, 40000}), Shape({70000, 1})}) {
    const Tensor x = counting(shape);
    const Tensor y = x.clone();
    const Tensor z = x.transpose(0, -1).clone().transpose(0, -1).contiguous();
    for (int64_t i = 0; i < x.count(); ++i) {
      ASSERT_EQ(y.data<float>()[i], static_cast<float>(i));
      ASSERT_EQ(z.data<float>()[i], static_cast<float>(i));
    }
  }
  set_threads(before);
}

TEST(Copy, BetweenEachPairOfTypes) {
  const std::vector<DType> all = {DType::f32, DType::bf16, DType::f16, DType::f64,    DType::i8,
                                  DType::u8,  DType::i32,  DType::i64, DType::boolean};
  for (const DType a : all) {
    for (const DType b : all) {
      const Tensor x = tensor<float>({0, 1, 0, 1}, {4}).to(a).to(b);
      EXPECT_EQ(x.dtype(), b);
      EXPECT_EQ(x.item({0}) + 2 * x.item({1}) + 4 * x.item({2}) + 8 * x.item({3}), 10) << name(a) << " to " << name(b);
    }
  }
}

TEST(Copy, ToTheSameTypeIsItself) {
  const Tensor x = counting({3});
  EXPECT_EQ(x.to(DType::f32).data<float>(), x.data<float>());
}

TEST(Copy, FloatsAreCutAndKeptInRange) {
  EXPECT_EQ(convert<int8_t>(3.9f), 3);
  EXPECT_EQ(convert<int8_t>(-3.9f), -3);
  EXPECT_EQ(convert<int8_t>(1e9f), 127);
  EXPECT_EQ(convert<int8_t>(-1e9), -128);
  EXPECT_EQ(convert<uint8_t>(-1.0f), 0);
  EXPECT_EQ(convert<int32_t>(INFINITY), INT32_MAX);
  EXPECT_EQ(convert<int32_t>(-INFINITY), INT32_MIN);
  EXPECT_EQ(convert<int64_t>(1e30f), INT64_MAX);
  EXPECT_EQ(convert<int32_t>(NAN), 0);
  EXPECT_EQ(convert<int32_t>(2147483647.0), INT32_MAX);
  EXPECT_EQ(convert<bool>(NAN), true);
  EXPECT_EQ(convert<bool>(0.25f), true);
  EXPECT_EQ(convert<bool>(-0.0f), false);
}

TEST(Copy, IntegersThatDoNotFitAreRefused) {
  struct Row {
    int64_t value;
    DType to;
    bool fits;
  };
  const int64_t wide = int64_t{1} << 32;
  for (const auto& [value, to, fits] : std::vector<Row>{{wide + 3, DType::i32, false},
                                                        {-wide - 3, DType::i32, false},
                                                        {INT32_MAX, DType::i32, true},
                                                        {INT32_MIN, DType::i32, true},
                                                        {int64_t{INT32_MAX} + 1, DType::i32, false},
                                                        {128, DType::i8, false},
                                                        {-128, DType::i8, true},
                                                        {-1, DType::u8, false},
                                                        {255, DType::u8, true},
                                                        {wide, DType::boolean, true},
                                                        {wide + 3, DType::f64, true}}) {
    const Tensor from = tensor<int64_t>({1, 0, value, 1}, {2, 2}).transpose(0, 1);
    try {
      const Tensor narrow = from.to(to);
      EXPECT_TRUE(fits) << value << " as " << name(to);
      EXPECT_EQ(narrow.item({0, 1}), to == DType::boolean ? 1 : static_cast<double>(value));
    } catch (const Error& error) {
      EXPECT_FALSE(fits) << error.what();
      EXPECT_NE(std::string(error.what()).find(fmt::format("element 1 is {}", value)), std::string::npos)
          << error.what();
    }
  }
  EXPECT_THROW(full({2}, 200, DType::u8).to(DType::i8), Error);
  EXPECT_THROW(full({2}, -1, DType::i8).to(DType::u8), Error);
  const Tensor kept = full({2}, 7, DType::i32);
  EXPECT_THROW(kept.copy_from(tensor<int64_t>({1, wide}, {2})), Error);
  EXPECT_EQ(kept.item({0}), 7) << "nothing is written";
}

TEST(Copy, DoubleToHalfRoundsOnce) {
  // Just past a tie: f32 would lose the last bit and leave a tie, which goes to the even side below.
  EXPECT_EQ(static_cast<float>(convert<bf16>(1 + 0x1p-8 + 0x1p-40)), 1 + 0x1p-7f);
  EXPECT_EQ(static_cast<float>(convert<f16>(1 + 0x1p-11 + 0x1p-40)), 1 + 0x1p-10f);
  EXPECT_EQ(static_cast<float>(convert<bf16>(int64_t{(1 << 24) + (1 << 16) + 1})),
            static_cast<float>((1 << 24) + (1 << 17)));
}

TEST(Copy, RefusesOtherShapesAndSharedPlaces) {
  try {
    zeros({2, 3}).copy_from(zeros({3, 2}));
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "copy_from: the shapes differ; expected [2, 3]; the other is [3, 2]");
  }
  EXPECT_THROW(zeros({1}).broadcast_to({3}).copy_from(zeros({3})), Error);
  EXPECT_THROW(Tensor().copy_from(full({}, 1)), Error);
  EXPECT_THROW(full({}, 1).copy_from(Tensor()), Error);
}

TEST(Copy, WithinOneTensorGoesThroughACopy) {
  const Tensor x = counting({6});
  x.slice(0, 1, 6).copy_from(x.slice(0, 0, 5));
  for (int64_t i = 0; i < 6; ++i) EXPECT_EQ(x.item({i}), i == 0 ? 0 : i - 1);
  const Tensor square = counting({3, 3});
  square.copy_from(square.transpose(0, 1));
  EXPECT_EQ(square.item({0, 2}), 6);
  EXPECT_EQ(square.item({2, 0}), 2);
}

}  // namespace
}  // namespace mh
