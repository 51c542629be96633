// Scratch memory: alignment, nesting, and when it goes back.
#include "multihead/base/scratch.h"

#include <gtest/gtest.h>

#include <cstring>
#include <thread>
#include <vector>

#include "multihead/base/memory.h"
#include "multihead/base/out_of_memory.h"

namespace mh {
namespace {

constexpr int64_t kMiB = 1 << 20;

bool aligned(const void* data, size_t to) { return reinterpret_cast<uintptr_t>(data) % to == 0; }

// In a thread of its own, so that it starts and ends without scratch.
template <class Body>
void on_fresh_thread(Body body) {
  const int64_t before = scratch_use().now;
  std::thread(body).join();
  EXPECT_EQ(scratch_use().now, before) << "the thread kept scratch past its end";
}

TEST(Scratch, BlocksAreAlignedAndApart) {
  on_fresh_thread([] {
    Scratch scratch;
    std::vector<std::pair<char*, int64_t>> blocks;
    for (const int64_t bytes : {0L, 1L, 63L, 64L, 65L, 4096L, 700000L, 2 * kMiB, 3L, 2 * kMiB + 1, 5 * kMiB, 100L}) {
      char* data = scratch.take<char>(bytes);
      ASSERT_NE(data, nullptr);
      ASSERT_TRUE(aligned(data, 64));
      if (bytes >= 2 * kMiB) {
        ASSERT_TRUE(aligned(data, 2 * kMiB));
      }
      std::memset(data, static_cast<int>(blocks.size()), static_cast<size_t>(bytes));
      blocks.emplace_back(data, bytes);
    }
    for (size_t b = 0; b < blocks.size(); ++b) {
      for (int64_t i = 0; i < blocks[b].second; ++i) ASSERT_EQ(blocks[b].first[i], static_cast<char>(b));
    }
  });
}

TEST(Scratch, NestedScratchesKeepTheirBlocks) {
  on_fresh_thread([] {
    Scratch outer;
    int64_t* a = outer.take<int64_t>(1000);
    for (int64_t i = 0; i < 1000; ++i) a[i] = i;
    int64_t* inner_first = nullptr;
    for (int round = 0; round < 3; ++round) {
      Scratch inner;
      int64_t* b = inner.take<int64_t>(400000 + 100000 * round);  // past the first chunk
      if (round == 0) inner_first = inner.take<int64_t>(10);
      std::memset(b, 0, 400000 * sizeof(int64_t));
      Scratch innermost;
      std::memset(innermost.take<char>(kMiB), 1, kMiB);
    }
    EXPECT_NE(inner_first, nullptr);
    int64_t* c = outer.take<int64_t>(1000);
    std::memset(c, 0xff, 1000 * sizeof(int64_t));
    for (int64_t i = 0; i < 1000; ++i) ASSERT_EQ(a[i], i);
  });
}

TEST(Scratch, TheNextOneReusesTheMemory) {
  on_fresh_thread([] {
    const auto once = [] {
      Scratch scratch;
      scratch.take<float>(100);
      return scratch.take<float>(2 * kMiB);
    };
    const float* first = once();
    const int64_t held = scratch_use().now;
    for (int round = 0; round < 10; ++round) ASSERT_EQ(once(), first);
    EXPECT_EQ(scratch_use().now, held);
  });
}

TEST(Scratch, GrowingRequestsDoNotPileUp) {
  on_fresh_thread([] {
    const int64_t before = scratch_use().now;
    for (int64_t size = 1; size <= 30; ++size) {
      Scratch scratch;
      scratch.take<char>(size * kMiB);
    }
    EXPECT_LE(scratch_use().now - before, 32 * kMiB);
  });
}

TEST(Scratch, GiantBlocksGoBackAtOnce) {
  on_fresh_thread([] {
    const int64_t before = scratch_use().now;
    {
      Scratch outer;
      outer.take<char>(100);
      {
        Scratch inner;
        inner.take<char>(kMiB)[0] = 1;
        inner.take<char>(70 * kMiB)[0] = 1;
        EXPECT_GE(scratch_use().now - before, 72 * kMiB);
        EXPECT_GE(scratch_use().peak, scratch_use().now);
      }
      EXPECT_LE(scratch_use().now - before, 4 * kMiB);
      EXPECT_TRUE(aligned(outer.take<char>(10), 64));
    }
    EXPECT_LE(scratch_use().now - before, 4 * kMiB);
  });
}

TEST(Scratch, GiantFirstBlockGoesBackToo) {
  on_fresh_thread([] {
    const int64_t before = scratch_use().now;
    for (int round = 0; round < 2; ++round) {
      Scratch scratch;
      scratch.take<char>(65 * kMiB)[0] = 1;
      scratch.take<char>(100)[0] = 1;
    }
    EXPECT_LE(scratch_use().now - before, 4 * kMiB);
  });
}

TEST(Scratch, ImpossibleSizesAreRefusedAndHarmless) {
  on_fresh_thread([] {
    Scratch scratch;
    char* kept = scratch.take<char>(8);
    std::memcpy(kept, "before!", 8);
    EXPECT_THROW(scratch.take<char>(-1), OutOfMemory);
    EXPECT_THROW(scratch.take<double>(INT64_MAX / 2), OutOfMemory);
    EXPECT_STREQ(kept, "before!");
    EXPECT_TRUE(aligned(scratch.take<char>(8), 64));
  });
}

TEST(Memory, BlocksAreAlignedAndNeverNull) {
  for (const size_t bytes : {size_t{0}, size_t{1}, size_t{1000}, kHugePage - 1, kHugePage, kHugePage + 1}) {
    void* data = allocate_bytes(bytes);
    ASSERT_NE(data, nullptr);
    EXPECT_TRUE(aligned(data, bytes >= kHugePage ? kHugePage : kCacheLine));
    std::memset(data, 1, bytes);
    release_bytes(data);
  }
  EXPECT_THROW(allocate_bytes(SIZE_MAX), OutOfMemory);
}

}  // namespace
}  // namespace mh
