// Sorting and cutting.
#include "multihead/generate/batches.h"

#include <algorithm>
#include <numeric>

namespace mh::detail {

namespace {

// Fewer do not keep a thread busy.
constexpr int64_t kFewestTokens = 256;

}  // namespace

std::vector<std::vector<int64_t>> cut_batches(const std::vector<int64_t>& lengths, int64_t width, int64_t budget,
                                              int64_t workers) {
  std::vector<int64_t> order(lengths.size());
  std::iota(order.begin(), order.end(), 0);
  const auto length = [&](int64_t n) { return lengths[static_cast<size_t>(n)]; };
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return length(a) > length(b); });

  int64_t left = std::accumulate(lengths.begin(), lengths.end(), int64_t{0});
  const int64_t few = kFewestTokens / width;
  const int64_t shares = workers > 1 && left >= 2 * few ? 2 * workers : 1;
  std::vector<std::vector<int64_t>> batches;
  int64_t held = 0, most = 0;
  for (const int64_t n : order) {
    if (batches.empty() || held + length(n) > most) {
      batches.emplace_back();
      held = 0;
      most = std::min(budget / width, std::max(few, left / shares));
    }
    batches.back().push_back(n);
    held += length(n);
    left -= length(n);
  }
  return batches;
}

}  // namespace mh::detail
