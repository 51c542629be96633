// Runs the trials. A rate alone means little on a shared host; its ratio to a reference turn a moment apart does.
#include "bench/trial.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "multihead/check/limits.h"

namespace mh::bench {
namespace {

constexpr double kShortestTrial = 0.002;
constexpr size_t kMostTrials = 600;

double wall_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double timed(const std::function<void()>& run, int repeats) {
  const double before = work_seconds();
  for (int i = 0; i < repeats; ++i) run();
  return std::max(work_seconds() - before, 1e-9) / repeats;
}

double reference_rate(const Reference& reference) {
  const double before = work_seconds();
  double work = 0;
  switch (reference.bound) {
    case Bound::multiply_adds: work = run_multiply_adds(); break;
    case Bound::pair_products: work = run_pair_products(); break;
    case Bound::tile_products: work = run_tile_products(); break;
    case Bound::plain_read:
      // The clock is read after 1, 2, 4 ... turns: beside a turn of a few microseconds it is not free.
      for (int turns = 1; work_seconds() - before < kShortestTrial / 2; turns *= 2)
        for (int i = 0; i < turns; ++i) work += run_plain_read(reference.memory);
      break;
  }
  return work / std::max(work_seconds() - before, 1e-9);
}

// The first call pays for first touches; the second says how often to repeat.
int repeats_for(const Subject& subject) {
  subject.run();
  return static_cast<int>(std::ceil(kShortestTrial / std::max(timed(subject.run, 1), 1e-7)));
}

struct Trial {
  double seconds = 0, fraction = 0, ratio = 0;
  TileState state = TileState::mixed;
};

Trial try_once(const Subject& subject, const Reference& reference, int repeats) {
  Trial trial;
  const bool tiles = reference.bound == Bound::tile_products;
  const double before = reference_rate(reference);
  const TileState state_before = tiles ? probe_tiles() : TileState::mixed;
  trial.seconds = timed(subject.run, repeats);
  const TileState state_after = tiles ? probe_tiles() : TileState::mixed;
  const double after = reference_rate(reference);
  trial.fraction = subject.work / trial.seconds / (0.5 * (before + after));
  if (state_before == state_after) trial.state = state_before;
  return trial;
}

template <class Value>
std::vector<double> collect(const std::vector<Trial>& trials, const Value& value) {
  std::vector<double> values;
  for (const Trial& trial : trials) values.push_back(value(trial));
  return values;
}

std::vector<Trial> in_state(const std::vector<Trial>& trials, TileState state) {
  std::vector<Trial> kept;
  std::copy_if(trials.begin(), trials.end(), std::back_inserter(kept),
               [&](const Trial& t) { return t.state == state; });
  return kept;
}

double median_seconds(const std::vector<Trial>& trials) {
  return quantile(collect(trials, [](const Trial& t) { return t.seconds; }), 0.5);
}

Outcome summarise(const std::vector<Trial>& trials, double work, bool with_ratio) {
  const std::vector<Trial> fast = in_state(trials, TileState::fast), slow = in_state(trials, TileState::slow);
  const std::vector<Trial>& counted = fast.empty() ? trials : fast;
  Outcome outcome;
  outcome.trials = static_cast<int>(trials.size());
  outcome.fast = static_cast<int>(fast.size());
  outcome.slow = static_cast<int>(slow.size());
  if (!fast.empty()) outcome.fast_rate = work / median_seconds(fast);
  if (!slow.empty()) outcome.slow_rate = work / median_seconds(slow);
  outcome.seconds = median_seconds(counted);
  outcome.rate = work / outcome.seconds;
  const std::vector<double> fractions = collect(counted, [](const Trial& t) { return t.fraction; });
  outcome.fraction = quantile(fractions, 0.5);
  outcome.fraction_p90 = quantile(fractions, 0.9);
  if (with_ratio) outcome.ratio = quantile(collect(counted, [](const Trial& t) { return t.ratio; }), 0.5);
  return outcome;
}

}  // namespace

double quantile(std::vector<double> values, double part) {
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(std::lround(part * static_cast<double>(values.size() - 1)))];
}

Outcome measure(const Subject& subject, const Reference& reference, const Budget& budget, const Subject* plain) {
  const int repeats = repeats_for(subject);
  const int plain_repeats = plain ? repeats_for(*plain) : 0;
  std::vector<Trial> trials;
  const double start = wall_seconds();
  const auto wanted = [&] {
    return wall_seconds() - start < budget.seconds || trials.size() < static_cast<size_t>(budget.least);
  };
  while (trials.size() < kMostTrials && wanted()) {
    Trial trial = try_once(subject, reference, repeats);
    if (plain) trial.ratio = trial.seconds / timed(plain->run, plain_repeats);
    trials.push_back(trial);
  }
  return summarise(trials, subject.work, plain != nullptr);
}

}  // namespace mh::bench
