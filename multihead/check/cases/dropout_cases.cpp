// Cases of dropout, by a mask drawn one element at a time.
#include <cmath>

#include "multihead/base/random.h"
#include "multihead/check/op_case.h"
#include "multihead/ops/rows/dropout.h"

namespace mh {

namespace {

Numbers dropped(const Numbers& x, float p, uint64_t seed) {
  const auto threshold = static_cast<uint32_t>(std::lround(static_cast<double>(p) * 65536));
  Numbers y(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    const auto words = philox4x32<7>({static_cast<uint32_t>(i / 8), static_cast<uint32_t>(i / 8 >> 32), 0, 0},
                                     {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)});
    const uint32_t word = words[i % 8 / 2], bits = i % 2 == 0 ? word & 0xffff : word >> 16;
    y[i] = bits >= threshold ? x[i] * 65536 / (65536 - threshold) : 0;
  }
  return y;
}

OpCase dropout_case(const Shape& shape, float p, uint64_t seed) {
  return {.label = fmt::format("dropout {} p {}", shape, p),
          .inputs = {{shape}},
          .op = [=](auto& x) { return dropout(x[0], {.p = p, .seed = seed}); },
          .reference = [=](auto& x) { return dropped(x[0], p, seed); }};
}

OpCase add_case(const Shape& shape, float p, bool mixed) {
  return {.label = fmt::format("dropout_add {} p {}{}", shape, p, mixed ? " onto f32" : ""),
          .inputs = {{shape}, {shape, 0, 1, mixed}},
          .op = [=](auto& x) { return dropout_add(x[0], x[1], {.p = p, .seed = 99}); },
          .reference =
              [=](auto& x) {
                Numbers y = dropped(x[0], p, 99);
                for (size_t n = 0; n < y.size(); ++n) y[n] += x[1][n];
                return y;
              },
          .types = mixed ? std::vector<DType>{DType::f32, DType::bf16} : float_types()};
}

}  // namespace

std::vector<OpCase> dropout_cases() {
  std::vector<OpCase> cases;
  for (const int64_t count : {1, 7, 8, 31, 33, 127, 128, 300})
    cases.push_back(dropout_case(Shape{count}, 0.25f, 0x123456789abcdefull));
  // More than one task.
  cases.push_back(dropout_case(Shape{3, 11000}, 0.1f, 5));
  cases.push_back(dropout_case(Shape{2, 3, 20}, 1.0f, 5));
  cases.push_back(dropout_case(Shape{2, 3, 20}, 0.0f, 5));
  cases.push_back(dropout_case(Shape{2, 0}, 0.5f, 5));
  for (const bool mixed : {false, true}) {
    cases.push_back(add_case(Shape{3, 50}, 0.3f, mixed));
    cases.push_back(add_case(Shape{3, 50}, 0.0f, mixed));
  }
  return cases;
}

}  // namespace mh
