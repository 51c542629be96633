// Views: sizes, strides and the memory they reach.
#include "multihead/tensor/tensor.h"

#include <gtest/gtest.h>

#include "tests/tensor/counting.h"

namespace mh {
namespace {

std::vector<double> values(const Tensor& x) {
  const Tensor flat = x.to(DType::f64).contiguous();
  return {flat.data<double>(), flat.data<double>() + flat.count()};
}

using Doubles = std::vector<double>;

TEST(Shape, KnowsItsProductAndText) {
  EXPECT_EQ(Shape({2, 3}).count(), 6);
  EXPECT_EQ(Shape().count(), 1);
  EXPECT_EQ(Shape({2, 0, 3}).count(), 0);
  EXPECT_EQ(Shape({0, INT64_MAX, INT64_MAX}).count(), 0);
  EXPECT_EQ(to_string(Shape({2, 3})), "[2, 3]");
  EXPECT_EQ(to_string(Shape()), "[]");
  EXPECT_TRUE(Shape({2, 3}) == Shape(std::vector<int64_t>{2, 3}));
  EXPECT_FALSE(Shape({2, 3}) == Shape({2, 3, 1}));
  EXPECT_FALSE(Shape({2, 3}) == Shape({3, 2}));
}

TEST(Shape, RefusesTooManyAxesAndProductsPast63Bits) {
  EXPECT_EQ(refusal([] {
              Shape({1, 2, 3, 4, 5, 6, 7});
            }),
            "Shape: 7 axes; expected at most 6; the sizes are [1, 2, 3, 4, 5, 6, 7]");
  EXPECT_EQ(refusal([] {
              Shape({INT64_MAX, 2}).count();
            }),
            "Shape: the number of elements overflows; expected less than 2^63; the shape is [9223372036854775807, 2]");
}

TEST(Tensor, DefaultIsEmpty) {
  const Tensor none;
  EXPECT_FALSE(none);
  EXPECT_FALSE(none.clone());
  EXPECT_FALSE(none.to(DType::f64));
  EXPECT_EQ(to_string(none), "empty tensor");
  EXPECT_THROW(none.item({}), Error);
  EXPECT_TRUE(empty({0}));
}

TEST(Tensor, CopiesOfTheHandleShareMemory) {
  const Tensor a = zeros({3});
  const Tensor b = a;
  b.data<float>()[1] = 5;
  EXPECT_EQ(a.item({1}), 5);
  const Tensor c = a.clone();
  c.data<float>()[1] = 6;
  EXPECT_EQ(a.item({1}), 5);
}

TEST(Tensor, MemoryOutlivesTheFirstHandle) {
  Tensor view;
  {
    const Tensor whole = counting({10});
    view = whole.slice(0, 5, 7);
  }
  EXPECT_EQ(values(view), (Doubles{5, 6}));
}

TEST(Tensor, NegativeAxesCountFromTheEnd) {
  const Tensor x = counting({2, 3, 4});
  EXPECT_EQ(x.size(-1), 4);
  EXPECT_EQ(x.size(-3), 2);
  EXPECT_EQ(x.stride(-2), 4);
  EXPECT_EQ(x.stride(0), 12);
  EXPECT_EQ(refusal([&] { x.size(3); }),
            "Tensor::size: axis 3 does not exist; expected -3 to 2; the shape is [2, 3, 4]");
  EXPECT_THROW(x.stride(-4), Error);
}

TEST(Tensor, DataRefusesAnotherType) {
  EXPECT_EQ(refusal([] { zeros({2}).data<double>(); }),
            "Tensor::data: the elements are f32; f64 was asked for; the shape is [2]");
}

TEST(Tensor, ItemReadsAnyType) {
  for (const DType t :
       {DType::f32, DType::bf16, DType::f16, DType::f64, DType::i8, DType::u8, DType::i32, DType::i64}) {
    EXPECT_EQ(full({2, 2}, 3, t).item({1, 0}), 3) << name(t);
  }
  EXPECT_EQ(full({1}, 3, DType::boolean).item({0}), 1);
  EXPECT_EQ(full({}, 7).item({}), 7);
  EXPECT_THROW(zeros({2, 2}).item({2, 0}), Error);
  EXPECT_THROW(zeros({2, 2}).item({0, -1}), Error);
  EXPECT_THROW(zeros({2, 2}).item({0}), Error);
}

TEST(Tensor, TransposeSwapsAxes) {
  const Tensor x = counting({2, 3});
  const Tensor t = x.transpose(0, -1);
  EXPECT_TRUE(t.shape() == Shape({3, 2}));
  EXPECT_EQ(values(t), (Doubles{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(t.data<float>(), x.data<float>());
  EXPECT_FALSE(t.is_contiguous());
  EXPECT_TRUE(x.transpose(1, 1).is_contiguous());
  EXPECT_THROW(x.transpose(0, 2), Error);
}

TEST(Tensor, SliceKeepsTheAxisAndSelectDropsIt) {
  const Tensor x = counting({3, 4});
  EXPECT_EQ(values(x.slice(1, 1, 3)), (Doubles{1, 2, 5, 6, 9, 10}));
  EXPECT_EQ(values(x.slice(-2, 2, 3)), (Doubles{8, 9, 10, 11}));
  EXPECT_EQ(values(x.select(0, 1)), (Doubles{4, 5, 6, 7}));
  EXPECT_EQ(values(x.select(-1, 3)), (Doubles{3, 7, 11}));
  EXPECT_EQ(x.select(0, 2).select(0, 1).rank(), 0);
  EXPECT_EQ(x.select(0, 2).select(0, 1).item({}), 9);
  EXPECT_EQ(x.slice(0, 3, 3).count(), 0);
}

TEST(Tensor, BoundsAreRefusedWithTheShape) {
  const Tensor x = counting({3, 4});
  EXPECT_EQ(refusal([&] { x.slice(1, 2, 5); }),
            "slice: [2, 5) of axis 1 is out of bounds; expected 0 <= begin <= end <= 4; the shape is [3, 4]");
  EXPECT_EQ(refusal([&] { x.select(0, 3); }),
            "select: index 3 of axis 0 is out of bounds; expected 0 to 2; the shape is [3, 4]");
  EXPECT_THROW(x.slice(0, -1, 2), Error);
  EXPECT_THROW(x.slice(0, 2, 1), Error);
  EXPECT_THROW(x.slice(2, 0, 1), Error);
  EXPECT_THROW(x.select(0, -1), Error);
  EXPECT_THROW(zeros({0}).select(0, 0), Error);
  EXPECT_THROW(zeros({}).select(0, 0), Error);
}

TEST(Tensor, UnsqueezeAddsAnAxisOfOne) {
  const Tensor x = counting({2, 3});
  EXPECT_TRUE(x.unsqueeze(0).shape() == Shape({1, 2, 3}));
  EXPECT_TRUE(x.unsqueeze(-1).shape() == Shape({2, 3, 1}));
  EXPECT_TRUE(x.unsqueeze(1).shape() == Shape({2, 1, 3}));
  EXPECT_EQ(values(x.transpose(0, 1).unsqueeze(1)), values(x.transpose(0, 1)));
  EXPECT_TRUE(x.unsqueeze(1).is_contiguous());
  EXPECT_THROW(x.unsqueeze(3), Error);
  EXPECT_THROW(zeros({1, 1, 1, 1, 1, 1}).unsqueeze(0), Error);
}

TEST(Tensor, BroadcastRepeatsWithStrideZero) {
  const Tensor x = counting({3, 1});
  const Tensor wide = x.broadcast_to({2, 3, 2});
  EXPECT_EQ(values(wide), (Doubles{0, 0, 1, 1, 2, 2, 0, 0, 1, 1, 2, 2}));
  EXPECT_EQ(wide.stride(0), 0);
  EXPECT_EQ(wide.stride(2), 0);
  EXPECT_EQ(wide.data<float>(), x.data<float>());
  EXPECT_TRUE(x.broadcast_to({3, 0}).shape() == Shape({3, 0}));
  EXPECT_EQ(full({}, 4).broadcast_to({2}).item({1}), 4);
  EXPECT_EQ(refusal([&] {
              x.broadcast_to({4, 2});
            }),
            "broadcast_to: [3, 1] does not repeat to [4, 2]; expected axes that are equal or 1");
  EXPECT_THROW(x.broadcast_to({3}), Error);
  EXPECT_THROW(x.broadcast_to({3, -1}), Error);
  EXPECT_THROW(zeros({1}).broadcast_to({INT64_MAX, 2}), Error);
}

TEST(Tensor, ReshapeIsAViewWhereStridesAllow) {
  const Tensor x = counting({2, 3, 4});
  EXPECT_EQ(x.reshape({6, 4}).data<float>(), x.data<float>());
  EXPECT_EQ(x.reshape({24}).data<float>(), x.data<float>());
  EXPECT_EQ(x.reshape({1, 2, 1, 12}).data<float>(), x.data<float>());
  EXPECT_EQ(values(x.reshape({4, 6})), values(x));

  const Tensor heads = counting({2, 5, 12}).reshape({2, 5, 3, 4}).transpose(1, 2);  // [2, 3, 5, 4], strided
  const Tensor split = heads.reshape({2, 3, 5, 2, 2});
  EXPECT_EQ(split.data<float>(), heads.data<float>());
  EXPECT_EQ(values(split), values(heads));

  const Tensor rows = counting({4, 6}).slice(1, 0, 3);  // rows apart: first axis splits, the two do not merge
  EXPECT_EQ(rows.reshape({2, 2, 3}).data<float>(), rows.data<float>());
  EXPECT_EQ(values(rows.reshape({2, 2, 3})), values(rows));
  EXPECT_EQ(values(counting({3, 1}).broadcast_to({3, 4}).reshape({3, 2, 2})),
            (Doubles{0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2}));
}

TEST(Tensor, ReshapeCopiesWhereTheyDoNot) {
  const Tensor t = counting({2, 3}).transpose(0, 1);
  const Tensor flat = t.reshape({6});
  EXPECT_NE(flat.data<float>(), t.data<float>());
  EXPECT_EQ(values(flat), (Doubles{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(values(counting({4, 6}).slice(1, 0, 3).reshape({12})), (Doubles{0, 1, 2, 6, 7, 8, 12, 13, 14, 18, 19, 20}));
}

TEST(Tensor, ReshapeFillsInOneSize) {
  const Tensor x = counting({2, 3, 4});
  EXPECT_TRUE(x.reshape({-1, 4}).shape() == Shape({6, 4}));
  EXPECT_TRUE(x.reshape({2, -1}).shape() == Shape({2, 12}));
  EXPECT_TRUE(zeros({0, 3}).reshape({-1, 3}).shape() == Shape({0, 3}));
  EXPECT_TRUE(zeros({0, 3}).reshape({5, 0}).shape() == Shape({5, 0}));
  EXPECT_EQ(refusal([&] {
              x.reshape({5, -1});
            }),
            "reshape: [5, -1] does not hold the 24 elements; expected the same number; the shape is [2, 3, 4]");
  EXPECT_THROW(x.reshape({-1, -1}), Error);
  EXPECT_THROW(x.reshape({-2, -12}), Error);
  EXPECT_THROW(x.reshape({INT64_MAX, INT64_MAX}), Error);
  EXPECT_THROW(zeros({0}).reshape({0, -1}), Error);
  EXPECT_EQ(full({1}, 3).reshape({}).item({}), 3);
}

TEST(Tensor, AxesOfSizeZeroPassThroughEveryView) {
  const Tensor x = zeros({2, 0, 3});
  EXPECT_EQ(x.count(), 0);
  EXPECT_TRUE(x.is_contiguous());
  EXPECT_TRUE(x.transpose(0, 1).is_contiguous());
  EXPECT_TRUE(x.select(0, 1).shape() == Shape({0, 3}));
  EXPECT_TRUE(x.slice(1, 0, 0).shape() == Shape({2, 0, 3}));
  EXPECT_TRUE(x.unsqueeze(1).shape() == Shape({2, 1, 0, 3}));
  EXPECT_TRUE(x.broadcast_to({4, 2, 0, 3}).shape() == Shape({4, 2, 0, 3}));
  EXPECT_TRUE(x.clone().shape() == Shape({2, 0, 3}));
  EXPECT_EQ(x.to(DType::bf16).dtype(), DType::bf16);
  EXPECT_EQ(to_string(x), "f32 [2, 0, 3]\n[[],\n []]");
}

TEST(Tensor, ContiguousIgnoresStridesOfSizeOne) {
  EXPECT_TRUE(counting({3, 4}).slice(0, 1, 2).is_contiguous());
  EXPECT_FALSE(counting({3, 4}).slice(1, 1, 2).is_contiguous());
  const Tensor x = counting({3, 4});
  EXPECT_EQ(x.contiguous().data<float>(), x.data<float>());
}

TEST(Print, ShowsTypeShapeAndValues) {
  EXPECT_EQ(to_string(counting({2, 3})), "f32 [2, 3]\n[[0, 1, 2],\n [3, 4, 5]]");
  EXPECT_EQ(to_string(full({}, 1.5, DType::f64)), "f64 []\n1.5");
  EXPECT_EQ(to_string(full({2}, 1, DType::boolean)), "bool [2]\n[true, true]");
  EXPECT_EQ(to_string(full({1}, -7, DType::i8)), "i8 [1]\n[-7]");
  EXPECT_EQ(to_string(tensor(std::vector<int64_t>{INT64_MAX}, {1})), "i64 [1]\n[9223372036854775807]");
  EXPECT_EQ(to_string(counting({2, 1, 2})), "f32 [2, 1, 2]\n[[[0, 1]],\n [[2, 3]]]");
}

TEST(Print, CutsLongAxes) {
  EXPECT_EQ(to_string(counting({7})), "f32 [7]\n[0, 1, 2, 3, 4, 5, 6]");
  EXPECT_EQ(to_string(counting({8})), "f32 [8]\n[0, 1, 2, …, 5, 6, 7]");
  EXPECT_EQ(to_string(zeros({100, 1})), "f32 [100, 1]\n[[0],\n [0],\n [0],\n …,\n [0],\n [0],\n [0]]");
}

TEST(Tensor, JoinedViewIsWhatThePartsWereCutFrom) {
  const Tensor x = randn({4, 6}, 1);
  const Tensor joined = joined_view({x.slice(1, 1, 3), x.slice(1, 3, 3), x.slice(1, 3, 6)}, 1);
  ASSERT_TRUE(joined);
  EXPECT_EQ(to_string(joined.shape()), "[4, 5]");
  EXPECT_EQ(joined.item({2, 4}), x.item({2, 5}));
  EXPECT_FALSE(joined_view({x.slice(1, 0, 2), x.slice(1, 3, 6)}, 1));
  EXPECT_FALSE(joined_view({x.slice(1, 0, 2), x.clone().slice(1, 2, 6)}, 1));
  EXPECT_FALSE(joined_view({x.slice(1, 0, 2), x.slice(1, 2, 6).slice(0, 0, 3)}, 1));
  EXPECT_FALSE(joined_view({x.slice(1, 0, 2), Tensor()}, 1));
  EXPECT_FALSE(joined_view({}, 0));
}

}  // namespace
}  // namespace mh
