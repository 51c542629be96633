// The angles of rope in double precision.
#include "multihead/kernels/rope_angles.h"

#include <cmath>

#include "multihead/kernels/cpu/plain/plain.h"

namespace mh::kernels {

void plain::rope_angles(const RopeAnglesArgs& args, Queue&) {
  const bool twice = args.interleaved;
  const int64_t entries = twice ? 2 * args.pairs : args.pairs;
  for (int64_t n = 0; n < entries; ++n) {
    const double pair = static_cast<double>(twice ? n / 2 : n);
    const double speed = std::pow(static_cast<double>(args.base), -pair / static_cast<double>(args.pairs));
    for (int64_t t = 0; t < args.count; ++t) {
      const double angle = static_cast<double>(args.positions ? args.positions[t] : t) * speed;
      args.cos[t * entries + n] = static_cast<float>(std::cos(angle));
      args.sin[t * entries + n] = static_cast<float>(std::sin(twice && n % 2 == 0 ? -angle : angle));
    }
  }
}

}  // namespace mh::kernels
