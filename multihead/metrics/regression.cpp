// How well numbers were predicted.
#include "multihead/metrics/regression.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>
#include <string_view>
#include <vector>

#include "multihead/base/error.h"

namespace mh {

namespace {

constexpr double kUndefined = std::numeric_limits<double>::quiet_NaN();

void check_numbers(std::string_view metric, std::span<const double> predictions, std::span<const double> references,
                   size_t least) {
  check(predictions.size() == references.size(), "{}: {} predictions and {} references; expected the same number",
        metric, predictions.size(), references.size());
  check(predictions.size() >= least, "{}: {} predictions; expected at least {}", metric, predictions.size(), least);
}

bool is_constant(std::span<const double> values) {
  return std::all_of(values.begin(), values.end(), [&](double value) { return value == values.front(); });
}

// The distances from the mean, over the largest of them: squares of huge or tiny values stay in range.
std::vector<double> deviations(std::span<const double> values) {
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
  std::vector<double> out;
  double largest = 0;
  for (const double value : values) {
    out.push_back(value - mean);
    largest = std::max(largest, std::abs(out.back()));
  }
  for (double& value : out) value /= largest;
  return out;
}

double correlation(std::span<const double> xs, std::span<const double> ys) {
  if (is_constant(xs) || is_constant(ys)) return kUndefined;
  const std::vector<double> x = deviations(xs), y = deviations(ys);
  double xx = 0, yy = 0, xy = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    xx += x[i] * x[i];
    yy += y[i] * y[i];
    xy += x[i] * y[i];
  }
  const double r = xy / (std::sqrt(xx) * std::sqrt(yy));
  return std::isnan(r) ? r : std::clamp(r, -1.0, 1.0);
}

std::vector<double> ranks(std::span<const double> values) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return values[a] < values[b]; });
  std::vector<double> out(values.size());
  for (size_t begin = 0; begin < order.size();) {
    size_t end = begin + 1;
    while (end < order.size() && values[order[end]] == values[order[begin]]) ++end;
    for (size_t i = begin; i < end; ++i) out[order[i]] = static_cast<double>(begin + 1 + end) / 2;
    begin = end;
  }
  return out;
}

bool has_nan(std::span<const double> values) {
  return std::any_of(values.begin(), values.end(), [](double value) { return std::isnan(value); });
}

}  // namespace

double mean_squared_error(std::span<const double> predictions, std::span<const double> references) {
  check_numbers("mean_squared_error", predictions, references, 1);
  double sum = 0;
  for (size_t i = 0; i < predictions.size(); ++i) {
    const double error = predictions[i] - references[i];
    sum += error * error;
  }
  return sum / static_cast<double>(predictions.size());
}

double mean_absolute_error(std::span<const double> predictions, std::span<const double> references) {
  check_numbers("mean_absolute_error", predictions, references, 1);
  double sum = 0;
  for (size_t i = 0; i < predictions.size(); ++i) sum += std::abs(predictions[i] - references[i]);
  return sum / static_cast<double>(predictions.size());
}

double pearson_correlation(std::span<const double> predictions, std::span<const double> references) {
  check_numbers("pearson_correlation", predictions, references, 2);
  return correlation(predictions, references);
}

double spearman_correlation(std::span<const double> predictions, std::span<const double> references) {
  check_numbers("spearman_correlation", predictions, references, 2);
  // NaN has no place in an order: sorting must not see it.
  if (has_nan(predictions) || has_nan(references)) return kUndefined;
  return correlation(ranks(predictions), ranks(references));
}

}  // namespace mh
