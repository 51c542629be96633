// The table of sines and cosines.
#include "multihead/nn/positions.h"

#include <cmath>

namespace mh {

namespace {

// Of column c: which angle, and whether its sine.
struct Column {
  double divisor;
  bool sine;
};

Column column_of(int64_t c, int64_t width, SinusoidLayout layout) {
  if (layout == SinusoidLayout::neighbours)
    return {std::pow(10000.0, static_cast<double>(c / 2 * 2) / static_cast<double>(width)), c % 2 == 0};
  const int64_t half = width / 2, n = c % half;
  const double power = layout == SinusoidLayout::halves ? static_cast<double>(2 * n) / static_cast<double>(width)
                       : half > 1                       ? static_cast<double>(n) / static_cast<double>(half - 1)
                                                        : 0;
  return {std::pow(10000.0, power), c < half};
}

}  // namespace

Tensor sinusoidal_positions(int64_t length, int64_t width, SinusoidLayout layout) {
  check(layout == SinusoidLayout::neighbours || width % 2 == 0,
        "sinusoidal_positions: the width {} is odd; expected an even one for sines and cosines in halves", width);
  const Tensor table = empty({length, width});
  for (int64_t c = 0; c < width; ++c) {
    const Column column = column_of(c, width, layout);
    for (int64_t t = 0; t < length; ++t) {
      const double angle = static_cast<double>(t) / column.divisor;
      table.data<float>()[t * width + c] = static_cast<float>(column.sine ? std::sin(angle) : std::cos(angle));
    }
  }
  return table;
}

}  // namespace mh
