// Averages of a run's steps.
#include "multihead/train/log/pace.h"

#include <algorithm>

namespace mh::detail {

void Pace::step(double begin, double end, int64_t tokens) {
  if (count_ > 0) between_ += begin - last_end_;
  last_end_ = end;
  // 1/n at first: the mean of what there is.
  const double part = std::max(0.05, 1 / static_cast<double>(++count_));
  seconds_ += part * (end - begin - seconds_);
  tokens_ += part * (static_cast<double>(tokens) - tokens_);
}

double Pace::seconds_left(int64_t steps) const {
  return static_cast<double>(steps) * (seconds_ + between_ / static_cast<double>(std::max<int64_t>(1, count_)));
}

}  // namespace mh::detail
