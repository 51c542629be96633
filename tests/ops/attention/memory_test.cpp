// Extra memory grows with the lengths, not with their product.
#include <gtest/gtest.h>

#include <fstream>

#include "multihead/base/scratch.h"
#include "multihead/ops/attention/attention.h"
#include "tests/harness/rungs.h"

namespace mh {
namespace {

// The most memory this process ever had; 0 under a sanitizer, whose own records of every access count as resident.
int64_t resident_peak() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return 0;
#endif
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) return std::atoll(line.c_str() + 6) * 1024;
  }
  return 0;
}

constexpr int64_t kMegabyte = 1'000'000;

TEST(AttentionMemory, AMillionKeysNeedLessThan100Megabytes) {
  constexpr int64_t kKeys = 1'000'000, kQueries = 64, kWidth = 16;
  const Tensor q = randn({1, 1, kQueries, kWidth}, 1, DType::bf16);
  const Tensor k = randn({1, 1, kKeys, kWidth}, 2, DType::bf16), v = randn({1, 1, kKeys, kWidth}, 3, DType::bf16);
  const Tensor d_o = randn({1, 1, kQueries, kWidth}, 4, DType::bf16);
  const int64_t before = resident_peak();

  const AttentionResult result = attention(q, k, v);
  EXPECT_LT(scratch_use().peak, 100 * kMegabyte);
  EXPECT_LT(resident_peak() - before, 100 * kMegabyte);

  const AttentionGradients grads = attention_backward({q, k, v, result}, d_o);
  const int64_t outputs = 2 * kKeys * kWidth * 2;
  EXPECT_LT(scratch_use().peak, 100 * kMegabyte);
  EXPECT_LT(resident_peak() - before - outputs, 100 * kMegabyte);
  EXPECT_TRUE(std::isfinite(result.lse.item({0, 0, 63})));
  EXPECT_TRUE(std::isfinite(grads.dk.item({0, 0, kKeys - 1, 0})));
}

TEST(AttentionMemory, StatisticsNeverHoldAllPairs) {
  constexpr int64_t kLength = 8192;
  const Tensor q = randn({1, 1, kLength, 8}, 1), k = randn({1, 1, kLength, 8}, 2);
  AttentionOptions options;
  options.mask = causal() & window(64, -1);
  const AttentionResult result = attention(q, k, k, options);
  const int64_t before = resident_peak();
  const AttentionStatistics statistics = attention_statistics(q, k, result.lse, options);
  EXPECT_LT(resident_peak() - before, 100 * kMegabyte);
  EXPECT_LT(scratch_use().peak, 100 * kMegabyte);
  double received = 0;
  for (int64_t j = 0; j < kLength; ++j) received += statistics.received.item({0, 0, j});
  EXPECT_NEAR(received, kLength, 1e-2);
}

}  // namespace
}  // namespace mh
