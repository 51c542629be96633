// Cases of rotary positions.
#include <cmath>

#include "multihead/check/op_case.h"
#include "multihead/ops/rows/rope.h"

namespace mh {

namespace {

struct Layout {
  Shape shape;                     // (…, T, H, D)
  std::vector<int32_t> positions;  // one for each token
  RopeOptions options;
};

Numbers turned(const Numbers& x, const Layout& of) {
  const auto heads = static_cast<size_t>(of.shape[of.shape.rank() - 2]),
             all = static_cast<size_t>(of.shape[of.shape.rank() - 1]);
  const size_t width = of.options.width == 0 ? all : static_cast<size_t>(of.options.width);
  Numbers y = x;
  for (size_t token = 0; token < of.positions.size(); ++token) {
    for (size_t head = 0; head < heads; ++head) {
      for (size_t n = 0; n < width / 2; ++n) {
        const bool halves = !of.options.interleaved;
        const size_t first = (token * heads + head) * all, a = first + (halves ? n : 2 * n),
                     b = halves ? a + width / 2 : a + 1;
        const double angle = of.positions[token] * std::pow(static_cast<double>(of.options.base),
                                                            -2.0 * static_cast<double>(n) / static_cast<double>(width));
        y[a] = x[a] * std::cos(angle) - x[b] * std::sin(angle);
        y[b] = x[b] * std::cos(angle) + x[a] * std::sin(angle);
      }
    }
  }
  return y;
}

OpCase rope_case(const std::string& label, const Layout& of, const Tensor& positions) {
  return {.label = label,
          .inputs = {{of.shape}},
          .op = [=](auto& x) { return rope(x[0], positions, of.options); },
          .reference = [of](auto& x) { return turned(x[0], of); },
          .terms = 2};
}

}  // namespace

std::vector<OpCase> rope_cases() {
  std::vector<OpCase> cases;
  for (const bool interleaved : {false, true}) {
    const std::string kind = interleaved ? "interleaved" : "halves";
    const Tensor counting = tensor<int32_t>({0, 1, 2}, Shape{3});
    for (const int64_t width : {2, 6, 16, 18, 34, 64}) {
      const Layout of{Shape{2, 3, 2, width}, {0, 1, 2, 0, 1, 2}, {.interleaved = interleaved}};
      cases.push_back(rope_case(fmt::format("rope {} of {}", kind, width), of, counting));
    }
    const Layout part{Shape{4, 1, 20}, {7, 0, 3, 500}, {.base = 500, .interleaved = interleaved, .width = 12}};
    cases.push_back(rope_case("rope packed, in part, " + kind, part, tensor<int32_t>(part.positions, Shape{4})));
    const Layout far{Shape{2, 1, 8}, {70000, 1 << 30}, {.interleaved = interleaved}};
    cases.push_back(rope_case("rope far out, " + kind, far, tensor<int32_t>(far.positions, Shape{2})));
  }
  cases.push_back(rope_case("rope of no tokens", {Shape{0, 2, 8}, {}, {}}, zeros(Shape{0}, DType::i32)));
  return cases;
}

}  // namespace mh
