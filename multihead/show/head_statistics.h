// What one head does, in a few numbers, gathered row by row.
#pragma once

#include <cstdint>

namespace mh {

// Means over rows. Previous, next and itself are of self-attention, 0 where there is no such key.
struct HeadStatistics {
  double entropy = 0;     // nats
  double confidence = 0;  // the largest weight
  double distance = 0;    // |row - key|, weighted
  double previous = 0, next = 0, itself = 0, first = 0, last = 0;

  // `weights` of `keys` keys; row from 0.
  void add(const float* weights, int64_t keys, int64_t row);
  // The means, of `rows` rows that were added.
  HeadStatistics over(int64_t rows) const;
};

}  // namespace mh
