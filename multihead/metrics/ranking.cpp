// How far up a list the one item stands that was looked for.
#include "multihead/metrics/ranking.h"

#include <cmath>
#include <string_view>

#include "multihead/base/error.h"

namespace mh {

namespace {

template <class Gain>
double mean_gain(std::string_view metric, std::span<const int64_t> ranks, int64_t k, Gain gain) {
  check(!ranks.empty(), "{}: no ranks; expected at least 1", metric);
  check(k >= 1, "{}: the first {} places; expected at least 1", metric, k);
  double sum = 0;
  for (const int64_t rank : ranks) {
    check(rank >= 1, "{}: a rank of {}; ranks begin at 1", metric, rank);
    if (rank <= k) sum += gain(static_cast<double>(rank));
  }
  return sum / static_cast<double>(ranks.size());
}

}  // namespace

int64_t rank_of(std::span<const float> scores, size_t item) {
  check(item < scores.size(), "rank_of: item {} of {}; expected one of them, counted from 0", item, scores.size());
  int64_t rank = 1;
  for (size_t i = 0; i < scores.size(); ++i) rank += i != item && !(scores[i] < scores[item]) ? 1 : 0;
  return rank;
}

double hit_rate(std::span<const int64_t> ranks, int64_t k) {
  return mean_gain("hit_rate", ranks, k, [](double) { return 1.0; });
}

double ndcg(std::span<const int64_t> ranks, int64_t k) {
  return mean_gain("ndcg", ranks, k, [](double rank) { return 1 / std::log2(1 + rank); });
}

double mean_reciprocal_rank(std::span<const int64_t> ranks) {
  return mean_gain("mean_reciprocal_rank", ranks, INT64_MAX, [](double rank) { return 1 / rank; });
}

}  // namespace mh
