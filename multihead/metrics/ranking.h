// How far up a list the one item stands that was looked for: hit rate, NDCG and mean reciprocal rank.
//
//   hit rate@k = mean of [rank ≤ k]
//   NDCG@k     = mean of [rank ≤ k] / log2(1 + rank)
//   MRR        = mean of 1 / rank
//
// Ranks begin at 1, the best.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace mh {

// The rank of scores[item], the largest score first: 1 and the number of other scores that are not smaller. Of a tie
// the item gets the last place, so that a model that gives all items one score gains nothing. A score that is NaN
// stands before the item, and an item that is NaN last. Throws: invalid_argument where there is no such item.
int64_t rank_of(std::span<const float> scores, size_t item);

// All from 0 to 1. Throws: invalid_argument where there is no rank, a rank is below 1, or k is.
double hit_rate(std::span<const int64_t> ranks, int64_t k);
double ndcg(std::span<const int64_t> ranks, int64_t k);
double mean_reciprocal_rank(std::span<const int64_t> ranks);

}  // namespace mh
