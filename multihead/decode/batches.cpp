// Sorting and cutting.
#include "multihead/decode/batches.h"

#include <algorithm>
#include <numeric>

namespace mh::detail {

std::vector<std::vector<int64_t>> cut_batches(const std::vector<int64_t>& lengths, int64_t width, int64_t budget,
                                              int64_t at_least) {
  std::vector<int64_t> order(lengths.size());
  std::iota(order.begin(), order.end(), 0);
  const auto length = [&](int64_t n) { return lengths[static_cast<size_t>(n)]; };
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return length(a) > length(b); });

  int64_t tokens = 0;
  for (const int64_t n : lengths) tokens += n;
  const int64_t most = std::max<int64_t>(1, std::min(budget / width, (tokens + at_least - 1) / at_least));
  std::vector<std::vector<int64_t>> batches;
  int64_t held = 0;
  for (const int64_t n : order) {
    if (batches.empty() || held + length(n) > most) {
      batches.emplace_back();
      held = 0;
    }
    batches.back().push_back(n);
    held += length(n);
  }
  return batches;
}

}  // namespace mh::detail
