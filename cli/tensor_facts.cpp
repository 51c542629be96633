// The numbers of a tensor in a few.
#include "cli/tensor_facts.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

namespace mh::cli {

TensorFacts tensor_facts(const Tensor& tensor) {
  const Tensor wide = tensor.to(DType::f64).contiguous();
  const std::span<const double> values(wide.data<double>(), static_cast<size_t>(wide.count()));
  TensorFacts out{.least = HUGE_VAL, .most = -HUGE_VAL, .mean = 0, .deviation = 0};
  double finite = 0;
  for (const double value : values) {
    if (!std::isfinite(value)) {
      ++(std::isnan(value) ? out.nan : out.infinite);
      continue;
    }
    ++finite;
    out.least = std::min(out.least, value);
    out.most = std::max(out.most, value);
    out.mean += value;
  }
  if (finite == 0) {
    out.least = out.most = out.mean = out.deviation = std::numeric_limits<double>::quiet_NaN();
    return out;
  }
  out.mean /= finite;
  // A second pass: the difference of two large squares would lose what it looks for.
  for (const double value : values)
    if (std::isfinite(value)) out.deviation += (value - out.mean) * (value - out.mean);
  out.deviation = std::sqrt(out.deviation / finite);
  return out;
}

}  // namespace mh::cli
