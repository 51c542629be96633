// A sliding window: each position sees the 64 before it. The cost follows the window, not the square of the length.
#include <chrono>
#include <cstdio>

#include "multihead/multihead.h"

int main() {
  const int64_t heads = 2, time = 2048, width = 64;
  const mh::Tensor q = mh::randn({1, heads, time, width}, 1), k = mh::randn({1, heads, time, width}, 2),
                   v = mh::randn({1, heads, time, width}, 3);

  const auto timed = [&](const char* label, const mh::AttentionOptions& options) {
    mh::attention(q, k, v, options);
    const auto begin = std::chrono::steady_clock::now();
    const mh::AttentionResult result = mh::attention(q, k, v, options);
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
    const mh::Explanation said = mh::explain(q, k, v, options);
    std::printf("%-8s %7.2f ms, %6.1f MFLOP, %s on %s\n", label, took.count(), static_cast<double>(said.flops) / 1e6,
                said.kernel.c_str(), said.rung.c_str());
    return result;
  };
  const mh::AttentionOptions options{.mask = mh::window(64, 0)};
  timed("full", {});
  timed("causal", {.mask = mh::causal()});
  const mh::AttentionResult result = timed("window", options);

  // The mean distance to the keys looked at stays inside the window.
  const mh::AttentionStatistics statistics = mh::attention_statistics(q, k, result.lse, options);
  for (int64_t i = 0; i < time; ++i) {
    const double distance = statistics.distance.item({0, 0, i});
    const int64_t farthest = static_cast<int64_t>(statistics.top_keys.item({0, 0, i, 0}));
    if (distance < 0 || distance > 64 || farthest > i || farthest < i - 64) return 1;
  }
  std::printf("mean distance of the last position: %.1f\n", statistics.distance.item({0, 0, time - 1}));
  return 0;
}
