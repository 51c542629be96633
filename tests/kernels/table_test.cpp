// The table of kernels: every one named once, and there on the CPU.
#include "multihead/kernels/table.h"

#include <gtest/gtest.h>

#include <set>

#include "multihead/base/error.h"
#include "multihead/kernels/cpu/dispatch.h"
#include "multihead/kernels/cpu/profile.h"

namespace mh::kernels {
namespace {

TEST(KernelTable, EveryKernelHasANameAndABodyOnTheCpu) {
  std::set<std::string_view> names;
  int count = 0;
  for_each_kernel([&]<auto kKernel>() {
    const auto& kernel = kernels_of(Device{}).*kKernel;
    EXPECT_TRUE(kernel) << kernel.name;
    names.insert(kernel.name);
    ++count;
  });
  EXPECT_EQ(names.size(), static_cast<size_t>(count));
  EXPECT_GT(count, 30);
}

TEST(KernelTable, AProfileTimesEveryKernel) {
  const Table& plain = kernels_of(Device{});
  const Table timed = profiled(plain);
  for_each_kernel([&]<auto kKernel>() {
    EXPECT_NE((timed.*kKernel).run, (plain.*kKernel).run) << (plain.*kKernel).name;
  });
}

TEST(KernelTable, AKernelThatIsNotThereNamesItself) {
  const Table none;
  try {
    none.lerp({}, queue_of(Device{}));
    FAIL() << "an empty table ran a kernel";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("lerp"), std::string::npos);
  }
}

TEST(KernelTable, ADeviceWithoutKernelsIsRefused) {
  EXPECT_THROW(kernels_of(Device{Device::Kind::cuda}), Error);
  EXPECT_THROW(use_table(Device::Kind::cpu, nullptr), Error);
}

}  // namespace
}  // namespace mh::kernels
