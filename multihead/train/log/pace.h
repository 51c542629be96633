// How fast a run is, and how long the rest of it takes.
#pragma once

#include <cstdint>

namespace mh::detail {

// A moving average over about the last 20 steps, of seconds and of tokens apart: a step with few tokens, as an epoch's
// last is, counts for no more than it is. What passes between steps (validation, checkpoints) is spread over all of
// them.
class Pace {
 public:
  // A step of so many tokens that took from `begin` to `end`, in seconds of one clock that never goes back.
  void step(double begin, double end, int64_t tokens);

  double tokens_per_second() const { return seconds_ > 0 ? tokens_ / seconds_ : 0; }
  double seconds_left(int64_t steps) const;

 private:
  int64_t count_ = 0;
  double seconds_ = 0, tokens_ = 0;  // of a step
  double between_ = 0, last_end_ = 0;
};

}  // namespace mh::detail
