// Tensors made fresh, wrapped, refused.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "multihead/base/out_of_memory.h"
#include "multihead/base/parallel.h"
#include "multihead/base/random.h"
#include "multihead/tensor/tensor.h"
#include "tests/tensor/counting.h"

namespace mh {
namespace {

TEST(Factories, MemoryIsAlignedDenseAndAsAsked) {
  for (const DType t : {DType::f32, DType::bf16, DType::f64, DType::u8, DType::boolean}) {
    for (const Shape& shape : {Shape({}), Shape({3, 5}), Shape({0}), Shape({1 << 10, 3 << 10})}) {
      const Tensor x = empty(shape, t);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(x.view().data) % 64, 0u);
      EXPECT_NE(x.view().data, nullptr);
      EXPECT_TRUE(x.is_contiguous());
      EXPECT_TRUE(x.shape() == shape);
      EXPECT_EQ(x.dtype(), t);
    }
  }
  const Tensor transposed = zeros({2, 3}, DType::f16).transpose(0, 1);
  EXPECT_TRUE(empty_like(transposed).is_contiguous());
  EXPECT_TRUE(empty_like(transposed).shape() == Shape({3, 2}));
  EXPECT_EQ(empty_like(transposed).dtype(), DType::f16);
}

TEST(Factories, AxesPastTheRankAreOfSizeOne) {
  const Tensor x = zeros({2, 3});
  for (int axis = 2; axis < kMaxRank; ++axis) {
    EXPECT_EQ(x.view().size[axis], 1);
    EXPECT_EQ(x.view().stride[axis], 0);
    EXPECT_EQ(x.select(0, 1).view().size[axis], 1);
  }
}

TEST(Factories, FillEveryElement) {
  for (const DType t :
       {DType::f32, DType::bf16, DType::f16, DType::f64, DType::i8, DType::u8, DType::i32, DType::i64}) {
    const Tensor zero = zeros({7}, t), five = full({7}, 5, t);
    for (int64_t i = 0; i < 7; ++i) {
      EXPECT_EQ(zero.item({i}), 0);
      EXPECT_EQ(five.item({i}), 5);
    }
  }
}

TEST(Factories, NormalNumbersAreFourOfEachDraw) {
  const Tensor x = randn({3, 7}, 5);
  for (int64_t i = 0; i < x.count(); ++i)
    EXPECT_EQ(x.data<float>()[i],
              static_cast<float>(random_normal(5, static_cast<uint64_t>(i) / 4)[static_cast<size_t>(i % 4)]));
}

TEST(Factories, SizesAreChecked) {
  EXPECT_EQ(refusal([] {
              empty({2, -3});
            }),
            "empty: size -3 of axis 1 is negative; expected 0 or more; the shape is [2, -3]");
  EXPECT_EQ(refusal([] { empty({INT64_MAX / 2}, DType::f64); }),
            "empty: the size in bytes overflows; expected less than 2^63; the shape is [4611686018427387903], the "
            "elements f64");
  EXPECT_THROW(empty({int64_t{1} << 40, int64_t{1} << 40}), Error);
  EXPECT_THROW(zeros({0, -1}), Error);
  try {
    empty({int64_t{1} << 55});
    FAIL();
  } catch (const OutOfMemory& error) {
    EXPECT_EQ(error.bytes(), size_t{1} << 57);
    EXPECT_STREQ(
        error.what(),
        "empty: 144115188075855872 bytes of memory for f32 [36028797018963968] cannot be allocated; expected a "
        "smaller call, or more memory");
  }
  EXPECT_EQ(empty({0, int64_t{1} << 40, int64_t{1} << 40}).count(), 0);
}

TEST(Factories, VectorFillsATensorOfItsType) {
  const Tensor x = tensor<int32_t>({1, 2, 3, 4, 5, 6}, {2, 3});
  EXPECT_EQ(x.dtype(), DType::i32);
  EXPECT_EQ(x.item({1, 0}), 4);
  EXPECT_EQ(tensor<bool>({true, false}, {2}).item({1}), 0);
  EXPECT_EQ(refusal([] { tensor<float>({1, 2}, {3}); }), "tensor: 2 values do not fill the shape [3]");
}

TEST(Randn, SameNumbersForAnyThreadsAndTypes) {
  const int before = threads();
  set_threads(1);
  const Tensor alone = randn({50001}, 3);
  set_threads(7);
  const Tensor together = randn({50001}, 3);
  const Tensor half = randn({50001}, 3, DType::bf16);
  set_threads(before);
  for (int64_t i = 0; i < 50001; ++i) {
    const double exact = random_normal(3, static_cast<uint64_t>(i) / 4)[static_cast<size_t>(i % 4)];
    ASSERT_EQ(alone.data<float>()[i], static_cast<float>(exact));
    ASSERT_EQ(together.data<float>()[i], static_cast<float>(exact));
    ASSERT_EQ(half.data<bf16>()[i].bits, bf16(exact).bits);
  }
}

TEST(Randn, ReshapedIsTheSameAndSeedsDiffer) {
  const Tensor a = randn({2, 3}, 1), b = randn({6}, 1), c = randn({6}, 2);
  EXPECT_EQ(a.item({1, 2}), b.item({5}));
  EXPECT_NE(b.item({0}), c.item({0}));
  EXPECT_EQ(randn({0, 4}, 1).count(), 0);
  EXPECT_THROW(randn({2}, 1, DType::i32), Error);
}

TEST(Wrap, ReadsAndWritesTheCallersMemory) {
  std::vector<float> memory(24);
  std::iota(memory.begin(), memory.end(), 0.0f);
  const Tensor x = wrap(memory.data(), {2, 3, 4}, DType::f32);
  EXPECT_EQ(x.item({1, 2, 3}), 23);
  x.data<float>()[0] = -1;
  EXPECT_EQ(memory[0], -1);

  const Tensor strided = wrap(memory.data(), {3, 2}, {8, 2}, DType::f32);
  EXPECT_EQ(strided.item({2, 1}), 18);
  const Tensor backwards = wrap(memory.data() + 23, {24}, {-1}, DType::f32);
  EXPECT_EQ(backwards.item({2}), 21);
  EXPECT_EQ(backwards.clone().data<float>()[23], -1);
  EXPECT_EQ(wrap(memory.data(), {5}, {0}, DType::f32).item({4}), -1);
}

TEST(Wrap, NullHoldsNothing) {
  const Tensor nothing = wrap(nullptr, {3, 0}, DType::f32);
  EXPECT_TRUE(nothing);
  EXPECT_EQ(nothing.count(), 0);
  EXPECT_TRUE(nothing.slice(0, 1, 2).transpose(0, 1).clone().shape() == Shape({0, 1}));
  EXPECT_EQ(refusal([] { wrap(nullptr, {2}, DType::f32); }),
            "wrap: the data is null; expected 2 elements; the shape is [2]");
  EXPECT_THROW(wrap(nullptr, {}, DType::f32), Error);
}

TEST(Wrap, RefusesWhatCannotBe) {
  alignas(8) char memory[64];
  EXPECT_EQ(
      refusal([&] { wrap(memory + 1, {2}, DType::f32); }),
      "wrap: the data is not aligned to its elements of type f32; expected a multiple of 4 bytes; the shape is [2]");
  EXPECT_EQ(refusal([&] {
              wrap(memory, {2, 2}, {1}, DType::f32);
            }),
            "wrap: 1 strides for 2 axes; expected one for each; the shape is [2, 2]");
  EXPECT_THROW(wrap(memory, {-1}, DType::f32), Error);
  EXPECT_THROW(wrap(memory, {INT64_MAX, 3}, DType::f32), Error);
  EXPECT_THROW(wrap(memory, {INT64_MAX / 2}, DType::f32), Error);
  EXPECT_THROW(wrap(memory, {2}, {INT64_MAX / 2}, DType::f32), Error);
  EXPECT_THROW(wrap(memory, {2}, {INT64_MIN}, DType::f32), Error);
  EXPECT_THROW(wrap(memory, {2, 2}, {INT64_MAX / 8, INT64_MAX / 8}, DType::f32), Error);
}

}  // namespace
}  // namespace mh
