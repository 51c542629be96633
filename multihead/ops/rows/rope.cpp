// rope: checks, the table of angles, the turn and the opposite turn.
#include "multihead/ops/rows/rope.h"

#include <algorithm>
#include <compare>
#include <map>
#include <mutex>
#include <numeric>
#include <vector>

#include "multihead/autograd/tape.h"
#include "multihead/kernels/rope_angles.h"
#include "multihead/ops/elementwise_run.h"
#include "multihead/ops/rows/rows.h"
#include "multihead/ops/run.h"

namespace mh {

namespace {

// What decides a table of angles.
struct Speeds {
  float base;
  int64_t pairs;
  bool interleaved;

  auto operator<=>(const Speeds&) const = default;
};

// As the kernel wants them (kernels/rope.h).
struct Angles {
  Tensor cos, sin;
};

// Of the positions given, or of the first `count`.
Angles angles_of(const Tensor& positions, int64_t count, Device device, const Speeds& speeds) {
  const Shape shape{count, speeds.interleaved ? 2 * speeds.pairs : speeds.pairs};
  const Angles out{empty(shape, DType::f32, device), empty(shape, DType::f32, device)};
  run(&Table::rope_angles,
      {.positions = positions ? positions.view().as<int32_t>() : nullptr,
       .count = count,
       .base = speeds.base,
       .pairs = speeds.pairs,
       .interleaved = speeds.interleaved,
       .cos = out.cos.view().as<float>(),
       .sin = out.sin.view().as<float>()},
      out.cos);
  return out;
}

// Tables of positions 0, 1, 2 … are made once, and grow by doubling; of the CPU, where the largest position is read.
Angles table_of(int64_t positions, const Speeds& speeds) {
  static std::mutex lock;
  static std::map<Speeds, Angles> tables;
  const std::lock_guard<std::mutex> guard(lock);
  Angles& table = tables[speeds];
  if (!table.cos || table.cos.size(0) < positions) {
    table = angles_of({}, std::max<int64_t>(64, positions * 2), Device{}, speeds);
  }
  return table;
}

// What the kernel takes: a table, and each token's row of it.
struct Turn {
  Speeds speeds;
  Angles angles;
  Tensor rows;
};

// Positions from here on get a table of the tokens there are, not one of all positions before them.
constexpr int32_t kLastInTable = 1 << 16;

Turn plan(const Tensor& places, Device device, const Speeds& speeds) {
  const int64_t count = places.count();
  if (device.is_cpu() && places.device().is_cpu()) {
    const int32_t* at = places.data<int32_t>();
    const int32_t most = count == 0 ? 0 : *std::max_element(at, at + count);
    if (most < kLastInTable) return {speeds, table_of(most + 1, speeds), places};
  }
  std::vector<int32_t> rows(static_cast<size_t>(count));
  std::iota(rows.begin(), rows.end(), 0);
  return {speeds, angles_of(places.to(device), count, device, speeds), tensor(rows, Shape{count}, device)};
}

Tensor turned(const Tensor& x, const Turn& turn, bool backwards) {
  const Tensor y = empty_like(x);
  if (y.count() == 0) return y;
  const int64_t heads = x.size(-2), width = x.size(-1);
  const Shape tokens{x.count() / (heads * width), heads, width};
  const Tensor plain = x.stride(-1) == 1 ? x.detach() : detail::dense(x);
  const Tensor from = plain.reshape(tokens), to = y.reshape(tokens);
  run(&Table::rope,
      {.x = from.view(),
       .y = to.view(),
       .positions = turn.rows.view().as<int32_t>(),
       .cos = turn.angles.cos.view().as<float>(),
       .sin = turn.angles.sin.view().as<float>(),
       .pairs = turn.speeds.pairs,
       .interleaved = turn.speeds.interleaved,
       .backwards = backwards},
      x);
  return y;
}

// One position for each token of x.
Tensor places_of(const Tensor& x, const Tensor& positions) {
  detail::check_indices("rope", "positions", positions, int64_t{1} << 31);
  std::vector<int64_t> sizes;
  for (int axis = 0; axis + 2 < x.rank(); ++axis) sizes.push_back(x.size(axis));
  const Shape tokens(sizes);
  check(detail::broadcast_shape(positions.shape(), tokens) == tokens,
        "rope: positions does not fit the leading axes of x; expected {}; x is {}, positions is {}", tokens, x.shape(),
        positions.shape());
  return positions.broadcast_to(tokens).contiguous();
}

}  // namespace

Tensor rope(const Tensor& x, const Tensor& positions, const RopeOptions& options) {
  detail::check_float("rope", "x", x);
  check(x.rank() >= 2, "rope: x has rank {}; expected 2 or more, (…, H, D); x is {}", x.rank(), x.shape());
  const int64_t width = options.width == 0 ? x.size(-1) : options.width;
  check(width >= 0 && width % 2 == 0 && width <= x.size(-1),
        "rope: {} elements of a head are to be turned; expected an even number up to {}; x is {}", width, x.size(-1),
        x.shape());
  check(options.base > 0, "rope: base is {}; expected more than 0", options.base);
  const Turn turn = plan(places_of(x, positions), x.device(), {options.base, width / 2, options.interleaved});

  const Tensor y = turned(x, turn, false);

  return record("rope", y, {x}, [turn](const Tensor& dy) { return Grads{turned(dy, turn, true)}; });
}

}  // namespace mh
