// rope: checks, the table of angles, the kernel's calls.
#include "multihead/ops/rope.h"

#include <algorithm>
#include <cmath>

#include "multihead/autograd/tape.h"
#include "multihead/kernels/cpu/dispatch.h"
#include "multihead/ops/rows.h"

namespace mh {

namespace {

struct Angles {
  Tensor cos, sin;  // (positions, pairs)
};

Angles angles_of(int64_t positions, int64_t pairs, float base) {
  const Angles out{empty({positions, pairs}), empty({positions, pairs})};
  for (int64_t n = 0; n < pairs; ++n) {
    const double step = std::pow(static_cast<double>(base), -static_cast<double>(n) / static_cast<double>(pairs));
    for (int64_t t = 0; t < positions; ++t) {
      const double angle = static_cast<double>(t) * step;
      out.cos.data<float>()[t * pairs + n] = static_cast<float>(std::cos(angle));
      out.sin.data<float>()[t * pairs + n] = static_cast<float>(std::sin(angle));
    }
  }
  return out;
}

struct Turn {
  Tensor positions;
  Angles angles;
  int64_t pairs;
  bool interleaved;
};

Tensor turned(const Tensor& x, const Turn& turn, bool backwards) {
  const Tensor y = empty(x.shape(), x.dtype());
  if (y.count() == 0) return y;
  const Shape heads{-1, x.size(-2), x.size(-1)};
  const Tensor from = x.detach().reshape(heads), to = y.reshape(heads);
  kernels::cpu().rope({.x = from.view(),
                       .y = to.view(),
                       .positions = turn.positions.data<int32_t>(),
                       .cos = turn.angles.cos.data<float>(),
                       .sin = turn.angles.sin.data<float>(),
                       .pairs = turn.pairs,
                       .interleaved = turn.interleaved,
                       .backwards = backwards});
  return y;
}

}  // namespace

Tensor rope(const Tensor& x, const Tensor& positions, const RopeOptions& options) {
  detail::check_float("rope", "x", x);
  check(x.rank() >= 2 && positions.dtype() == DType::i32,
        "rope: x is {}, positions is {} of {}; expected (…, H, D) and i32", x.shape(), positions.shape(),
        name(positions.dtype()));
  const int64_t width = options.width == 0 ? x.size(-1) : options.width;
  check(width % 2 == 0 && width >= 0 && width <= x.size(-1),
        "rope: {} elements of a head are to be turned; expected an even number up to {}; x is {}", width, x.size(-1),
        x.shape());
  const Tensor places = positions.contiguous();
  check(places.count() * x.size(-2) * x.size(-1) == x.count(),
        "rope: positions does not fit the leading axes of x; x is {}, positions is {}", x.shape(), positions.shape());
  int32_t last = -1;
  for (int64_t n = 0; n < places.count(); ++n) {
    const int32_t at = places.data<int32_t>()[n];
    check(at >= 0, "rope: position {} is negative; expected 0 or more; positions is {}", at, positions.shape());
    last = std::max(last, at);
  }
  const Turn turn{places, angles_of(int64_t{last} + 1, width / 2, options.base), width / 2, options.interleaved};
  return record("rope", turned(x, turn, false), {x},
                [turn](const Tensor& dy) { return Grads{turned(dy, turn, true)}; });
}

}  // namespace mh
