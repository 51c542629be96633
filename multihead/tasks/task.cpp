// A metric by its name.
#include "multihead/tasks/task.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "multihead/base/error.h"

namespace mh {

double value_of(const Metrics& metrics, const std::string& name) {
  for (const auto& [each, number] : metrics)
    if (each == name) return number;
  fail(ErrorKind::invalid_argument, "validation: there is no metric {}; this task does not measure it", name);
}

void Verdict::watch(const std::string& metric) {
  const double loss = value_of(metrics, "loss");
  value_of(metrics, metric);
  const auto at = std::find_if(metrics.begin(), metrics.end(), [&](const auto& each) { return each.first == metric; });
  if (!std::isfinite(loss)) at->second = std::numeric_limits<double>::quiet_NaN();
  std::rotate(metrics.begin(), at, at + 1);
}

}  // namespace mh
