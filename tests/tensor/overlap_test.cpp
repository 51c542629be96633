// Overlap: by formula against a count of every byte.
#include <gtest/gtest.h>

#include <set>

#include "multihead/base/random.h"
#include "multihead/tensor/tensor.h"

namespace mh {
namespace {

// Offsets in bytes of every element's bytes; `twice` says whether one came up for two elements.
std::set<const char*> bytes_of(const Tensor& x, bool& twice) {
  std::set<const char*> bytes;
  const View& view = x.view();
  twice = false;
  for (int64_t n = 0; n < x.count(); ++n) {
    int64_t rest = n, offset = 0;
    for (int axis = view.rank - 1; axis >= 0; --axis) {
      offset += rest % view.size[axis] * view.stride[axis];
      rest /= view.size[axis];
    }
    for (int64_t b = 0; b < size_of(view.dtype); ++b) {
      twice = !bytes.insert(static_cast<const char*>(view.data) + offset * size_of(view.dtype) + b).second || twice;
    }
  }
  return bytes;
}

bool share_bytes(const Tensor& a, const Tensor& b) {
  bool twice = false;
  const std::set<const char*> first = bytes_of(a, twice);
  for (const char* byte : bytes_of(b, twice)) {
    if (first.count(byte) != 0) return true;
  }
  return false;
}

TEST(Overlaps, SlicesOfAPackedProjectionDoNot) {
  const int64_t heads = 4, width = 8;
  const Tensor packed = zeros({2, 10, 3 * heads * width}).reshape({2, 10, 3, heads, width});
  const Tensor q = packed.select(2, 0).transpose(1, 2);
  const Tensor k = packed.select(2, 1).transpose(1, 2);
  const Tensor v = packed.select(2, 2).transpose(1, 2);
  EXPECT_FALSE(overlaps(q, k));
  EXPECT_FALSE(overlaps(k, v));
  EXPECT_FALSE(overlaps(q, v));
  EXPECT_TRUE(overlaps(q, packed));
  EXPECT_TRUE(overlaps(k, k.slice(2, 9, 10)));
  EXPECT_FALSE(overlaps(q, k.slice(2, 3, 7)));
}

TEST(Overlaps, InterleavedGroupedHeadsDoNot) {
  const Tensor packed = zeros({3, 7, 8 * 16});  // 4 query heads, 2 key heads, 2 value heads in a row
  const Tensor q = packed.slice(2, 0, 64).reshape({3, 7, 4, 16});
  const Tensor k = packed.slice(2, 64, 96).reshape({3, 7, 2, 16});
  const Tensor v = packed.slice(2, 96, 128).reshape({3, 7, 2, 16});
  EXPECT_FALSE(overlaps(q, k));
  EXPECT_FALSE(overlaps(k, v));
  EXPECT_TRUE(overlaps(packed.slice(2, 63, 65), q));
  EXPECT_TRUE(overlaps(packed.slice(2, 63, 65), k));
}

TEST(Overlaps, NothingToShare) {
  const Tensor a = zeros({4});
  EXPECT_FALSE(overlaps(a, zeros({4})));
  EXPECT_FALSE(overlaps(a, a.slice(0, 2, 2)));
  EXPECT_FALSE(overlaps(a, Tensor()));
  EXPECT_FALSE(overlaps(a.slice(0, 0, 2), a.slice(0, 2, 4)));
  EXPECT_TRUE(overlaps(a.slice(0, 0, 3), a.slice(0, 2, 4)));
}

TEST(Overlaps, SeesPartsOfElements) {
  alignas(8) char memory[16];
  EXPECT_TRUE(overlaps(wrap(memory, {2}, DType::f64), wrap(memory + 6, {1}, DType::i8)));
  EXPECT_TRUE(overlaps(wrap(memory + 7, {1}, DType::i8), wrap(memory, {1}, DType::f64)));
  EXPECT_FALSE(overlaps(wrap(memory + 8, {1}, DType::i8), wrap(memory, {1}, DType::f64)));
}

TEST(Overlaps, BroadcastViewsOverlapThemselves) {
  EXPECT_TRUE(overlaps_itself(zeros({3, 1}).broadcast_to({3, 2})));
  EXPECT_FALSE(overlaps_itself(zeros({3, 2}).transpose(0, 1)));
  EXPECT_FALSE(overlaps_itself(zeros({1}).broadcast_to({1, 1})));
  EXPECT_FALSE(overlaps_itself(zeros({1}).broadcast_to({0})));
  const Tensor memory = zeros({100});
  EXPECT_TRUE(overlaps_itself(wrap(memory.view().data, {3, 4}, {2, 1}, DType::f32)));  // sliding windows
  EXPECT_TRUE(overlaps_itself(wrap(memory.view().data, {3, 3}, {2, 2}, DType::f32)));
  EXPECT_FALSE(overlaps_itself(wrap(memory.view().data, {3, 2}, {2, 1}, DType::f32)));
}

TEST(Overlaps, AgreesWithCountingBytes) {
  alignas(8) static char memory[4096];
  Random random(17);
  const std::array<DType, 4> types = {DType::f32, DType::f16, DType::f64, DType::u8};
  const auto any_tensor = [&] {
    const DType type = types[static_cast<size_t>(random.below(4))];
    std::vector<int64_t> sizes, strides;
    for (int64_t rank = random.below(4); rank > 0; --rank) {
      sizes.push_back(random.below(5));
      strides.push_back(random.below(24) - 6);
    }
    return wrap(memory + 1024 + 8 * random.below(12), Shape(sizes), strides, type);
  };
  int yes = 0;
  constexpr int kRounds = 4000;
  for (int round = 0; round < kRounds; ++round) {
    const Tensor a = any_tensor(), b = any_tensor();
    const bool expected = share_bytes(a, b);
    ASSERT_EQ(overlaps(a, b), expected) << to_string(a.shape()) << to_string(b.shape());
    ASSERT_EQ(overlaps(b, a), expected);
    bool twice = false;
    bytes_of(a, twice);
    ASSERT_EQ(overlaps_itself(a), twice) << to_string(a.shape());
    yes += expected ? 1 : 0;
  }
  EXPECT_GT(yes, kRounds / 10);
  EXPECT_LT(yes, kRounds * 9 / 10);
}

}  // namespace
}  // namespace mh
