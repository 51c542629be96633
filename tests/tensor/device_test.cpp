// Where tensors lie: copies between devices, and refusals of memory that is not the CPU's.
#include "multihead/base/device.h"

#include <gtest/gtest.h>

#include "multihead/tensor/tensor.h"
#include "tests/harness/host2.h"
#include "tests/harness/refusal.h"

namespace mh {
namespace {

using harness::kHost2;

TEST(TensorDevice, IsTheCpuUnlessAskedForAnother) {
  harness::bring_host2();
  EXPECT_EQ(Tensor().device(), Device{});
  EXPECT_EQ(zeros({2}).device(), Device{});
  for (const Tensor& x : {empty({2, 3}, DType::f32, kHost2), full({2}, 3, DType::bf16, kHost2),
                          randn({5}, 1, DType::f32, kHost2), tensor<float>({1, 2}, {2}, kHost2)}) {
    EXPECT_EQ(x.device(), kHost2);
    EXPECT_EQ(empty_like(x).device(), kHost2);
    EXPECT_EQ(x.clone().device(), kHost2);
    EXPECT_EQ(x.reshape({-1}).device(), kHost2);
  }
}

TEST(TensorDevice, CopiesKeepValuesAndViews) {
  harness::bring_host2();
  const Tensor x = randn({3, 4, 5}, 7), there = x.to(kHost2), turned = there.transpose(0, 2);
  EXPECT_EQ(to_string(there.to(Device{})), to_string(x));
  EXPECT_EQ(to_string(turned.to(Device{})), to_string(x.transpose(0, 2).contiguous()));
  EXPECT_EQ(to_string(turned.to(DType::bf16).to(Device{})), to_string(x.transpose(0, 2).to(DType::bf16)));
  const Tensor into = zeros({3, 4, 5});
  into.copy_from(there);
  EXPECT_EQ(to_string(into), to_string(x));
  EXPECT_TRUE(to_string(there).ends_with("on host2:0"));
}

TEST(TensorDevice, ElementsAreRefusedByNameOffTheCpu) {
  harness::bring_host2();
  const Tensor x = zeros({2}, DType::f32, kHost2);
  EXPECT_TRUE(refusal_of([&] { static_cast<void>(x.data<float>()); }).says("host2:0"));
  EXPECT_TRUE(refusal_of([&] { static_cast<void>(x.item({0})); }).says("host2:0"));
}

TEST(TensorDevice, WithoutABackEndIsRefused) {
  EXPECT_TRUE(refusal_of([&] {
                static_cast<void>(zeros({2}, DType::f32, Device{Device::Kind::cuda, 1}));
              }).says("cuda:1"));
}

}  // namespace
}  // namespace mh
