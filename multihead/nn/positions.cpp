// The table of sines and cosines.
#include "multihead/nn/positions.h"

#include <cmath>

namespace mh {

Tensor sinusoidal_positions(int64_t length, int64_t width) {
  const Tensor table = empty({length, width});
  for (int64_t t = 0; t < length; ++t) {
    for (int64_t c = 0; c < width; ++c) {
      const double angle =
          static_cast<double>(t) / std::pow(10000.0, static_cast<double>(c / 2 * 2) / static_cast<double>(width));
      table.data<float>()[t * width + c] = static_cast<float>(c % 2 == 0 ? std::sin(angle) : std::cos(angle));
    }
  }
  return table;
}

}  // namespace mh
