// Learning rates.
#include "multihead/optim/schedule.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <utility>

#include "multihead/base/error.h"

namespace mh {

namespace {

constexpr std::array<std::pair<ScheduleKind, std::string_view>, 4> kNames{{{ScheduleKind::constant, "constant"},
                                                                           {ScheduleKind::linear, "linear"},
                                                                           {ScheduleKind::cosine, "cosine"},
                                                                           {ScheduleKind::paper, "paper"}}};

}  // namespace

std::optional<ScheduleKind> schedule_named(std::string_view wanted) {
  for (const auto& [kind, text] : kNames) {
    if (text == wanted) return kind;
  }
  return {};
}

std::string_view name(ScheduleKind kind) {
  for (const auto& [each, text] : kNames) {
    if (each == kind) return text;
  }
  return "?";
}

double Schedule::at(int64_t s) const {
  check(rate >= 0 && std::isfinite(rate), "schedule: the rate is {}; expected a finite number, 0 or more", rate);
  check(warmup >= 0 && steps >= 0, "schedule: {} steps, {} of them warm-up; expected 0 or more of each", steps, warmup);
  check(floor >= 0 && floor <= 1, "schedule: the floor is {}; expected a share of the rate, 0 to 1", floor);
  check(s >= 0, "schedule: step {} is asked for; expected 0 or more", s);
  const auto step = static_cast<double>(s);
  if (s < warmup) return rate * (step + 1) / static_cast<double>(warmup);
  const auto rest = static_cast<double>(std::max<int64_t>(1, steps - warmup));
  const double progress = std::min(1.0, (step - static_cast<double>(warmup)) / rest);
  const auto above_floor = [this](double share) { return rate * (floor + (1 - floor) * share); };
  const auto peak = static_cast<double>(std::max<int64_t>(1, warmup));
  switch (kind) {
    case ScheduleKind::constant: return rate;
    case ScheduleKind::linear: return above_floor(1 - progress);
    case ScheduleKind::cosine: return above_floor((1 + std::cos(std::numbers::pi * progress)) / 2);
    case ScheduleKind::paper: return rate * std::max(floor, std::sqrt(peak / (step + 1)));
  }
  return rate;
}

}  // namespace mh
