// The learning rate over the steps.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace mh {

// After a linear warm-up (step s < warmup: rate · (s + 1) / warmup):
//   constant  rate
//   linear    rate · (floor + (1 - floor) · (1 - progress)), progress from 0 to 1 over the steps after the warm-up
//   cosine    rate · (floor + (1 - floor) · (1 + cos(π · progress)) / 2)
//   paper     rate · max(floor, √(warmup / (s + 1))): "Attention is all you need" with its rate at the peak; a warm-up
//             of 0 counts as 1
enum class ScheduleKind { constant, linear, cosine, paper };
std::optional<ScheduleKind> schedule_named(std::string_view name);
std::string_view name(ScheduleKind kind);

struct Schedule {
  ScheduleKind kind = ScheduleKind::cosine;
  double rate = 1e-3;
  int64_t warmup = 1000, steps = 1;
  double floor = 0;  // share of the rate below which it does not fall after the warm-up

  // Of step s, counted from 0. Throws: invalid_argument where the rate is negative or not finite, a number of steps is
  // negative, or the floor is not in 0 to 1.
  double at(int64_t s) const;
};

}  // namespace mh
