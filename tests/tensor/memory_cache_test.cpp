// Kept memory: found again, bounded by what was in use, given back on request.
#include "multihead/tensor/memory_cache.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <thread>
#include <vector>

#include "multihead/tensor/tensor.h"

namespace mh {
namespace {

#if defined(__SANITIZE_ADDRESS__)
constexpr bool kKeeps = false;  // a sanitizer must see every block end
#else
constexpr bool kKeeps = true;
#endif

TEST(MemoryCache, SameSizeComesBack) {
  if (!kKeeps) GTEST_SKIP() << "nothing is kept under AddressSanitizer";
  release_kept_memory();
  const void* first = nullptr;
  {
    const Tensor a = empty({1000, 100});
    first = a.view().data;
  }
  EXPECT_EQ(empty({1000, 100}).view().data, first);
  EXPECT_EQ(empty({999, 100}).view().data, first);  // the same class
}

TEST(MemoryCache, BlocksHoldWhatWasAsked) {
  for (size_t bytes : {1024UL, 1025UL, 4097UL, 9000UL, (1UL << 20) - 1, 1UL << 21, (1UL << 21) + 1, 5000001UL}) {
    auto* data = static_cast<char*>(take_bytes(bytes));
    EXPECT_EQ(reinterpret_cast<uintptr_t>(data) % 64, 0u);
    data[0] = 1;
    data[bytes - 1] = 2;
    give_bytes(data, bytes);
  }
}

TEST(MemoryCache, HoldsNoMoreThanAQuarterBeyondWhatWasInUse) {
  if (!kKeeps) GTEST_SKIP() << "nothing is kept under AddressSanitizer";
  release_kept_memory();
  for (int64_t n = 1; n < 200; ++n) empty({n, 1024});
  const MemoryUse use = memory_use();
  EXPECT_LE(use.in_use + use.kept, use.peak + use.peak / 4);
  EXPECT_GT(use.kept, 0);
  release_kept_memory();
  EXPECT_EQ(memory_use().kept, 0);
}

TEST(MemoryCache, SizesNobodyAsksForGiveWay) {
  if (!kKeeps) GTEST_SKIP() << "nothing is kept under AddressSanitizer";
  release_kept_memory();
  const int64_t most = std::max<int64_t>(memory_use().peak, 1 << 20) / 4;  // as many floats fill what may be kept
  empty({most});
  const int64_t filled = memory_use().kept;
  empty({most / 2});
  EXPECT_EQ(memory_use().kept, filled);  // no room beside the other
  for (int n = 0; n < 10000; ++n) empty({1000});
  const void* first = empty({most / 2}).view().data;
  EXPECT_LT(memory_use().kept, filled);
  EXPECT_EQ(empty({most / 2}).view().data, first);
}

TEST(MemoryCache, MemoryThatCouldNotBeHadWasNeverInUse) {
  const MemoryUse before = memory_use();
  EXPECT_THROW(empty({int64_t{1} << 55}), Error);
  EXPECT_EQ(memory_use().in_use, before.in_use);
  EXPECT_EQ(memory_use().peak, before.peak);
}

TEST(MemoryCache, ThreadsMayShareIt) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([t] {
      for (int64_t n = 0; n < 500; ++n) {
        const Tensor x = full({(n * 37 + t) % 300 + 300}, t);
        EXPECT_EQ(x.item({299}), t);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace mh
