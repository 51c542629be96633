// Sums over a row of weights.
#include "multihead/show/head_statistics.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace mh {

void HeadStatistics::add(const float* weights, int64_t keys, int64_t row) {
  const auto at = [&](int64_t j) { return j >= 0 && j < keys ? static_cast<double>(weights[j]) : 0.0; };
  double most = 0;
  for (int64_t j = 0; j < keys; ++j) {
    const double w = weights[j];
    if (w > 0) entropy -= w * std::log(w);
    distance += w * static_cast<double>(std::abs(row - j));
    most = std::max(most, w);
  }
  confidence += most;
  previous += at(row - 1);
  itself += at(row);
  next += at(row + 1);
  first += at(0);
  last += at(keys - 1);
}

HeadStatistics HeadStatistics::over(int64_t rows) const {
  HeadStatistics mean = *this;
  for (double* each : {&mean.entropy, &mean.confidence, &mean.distance, &mean.previous, &mean.next, &mean.itself,
                       &mean.first, &mean.last})
    *each /= static_cast<double>(std::max<int64_t>(1, rows));
  return mean;
}

}  // namespace mh
