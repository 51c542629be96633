// Cases of the ops that only move elements.
#include "multihead/check/op_case.h"
#include "multihead/ops/elementwise.h"
#include "multihead/ops/shape.h"

namespace mh {

namespace {

// y[n] = x[from[n]], where the numbers come from the op itself on a tensor that counts its elements.
OpCase moving_case(const char* label, const Shape& shape, const std::function<Tensor(const Tensor&)>& op) {
  const Tensor counting = empty(shape);
  for (int64_t n = 0; n < counting.count(); ++n) counting.data<float>()[n] = static_cast<float>(n);
  const Tensor from = op(counting).contiguous();
  return {.label = label,
          .inputs = {{shape}},
          .op = [op](auto& x) { return op(x[0]); },
          .reference =
              [from](auto& x) {
                Numbers y;
                for (int64_t n = 0; n < from.count(); ++n)
                  y.push_back(x[0][static_cast<size_t>(from.data<float>()[n])]);
                return y;
              }};
}

}  // namespace

std::vector<OpCase> shape_cases() {
  std::vector<OpCase> cases;
  cases.push_back(moving_case("reshape", Shape{4, 6}, [](const Tensor& x) { return reshape(x, Shape{2, -1}); }));
  cases.push_back(moving_case("transpose", Shape{3, 4, 5}, [](const Tensor& x) { return transpose(x, 0, 2); }));
  cases.push_back(moving_case("transpose, then reshape", Shape{3, 4, 5}, [](const Tensor& x) {
    return reshape(transpose(x, 0, 1), Shape{20, 3});
  }));
  cases.push_back(moving_case("slice", Shape{3, 8}, [](const Tensor& x) { return slice(x, 1, 2, 7); }));
  cases.push_back(moving_case("slice of nothing", Shape{3, 8}, [](const Tensor& x) { return slice(x, 0, 1, 1); }));
  cases.push_back(moving_case("broadcast_to", Shape{3, 1}, [](const Tensor& x) {
    return broadcast_to(x, Shape{2, 3, 4});
  }));
  cases.push_back(moving_case("split, joined in another order", Shape{2, 9, 3}, [](const Tensor& x) {
    const auto parts = split(x, 1, {2, 3, 4});
    return concat({parts[2], parts[0], parts[1]}, 1);
  }));
  cases.push_back(moving_case("split, one part not used", Shape{5, 7}, [](const Tensor& x) {
    const auto parts = split(x, -1, {3, 0, 4});
    return parts[2];
  }));
  cases.push_back(moving_case("concat with itself", Shape{3, 4}, [](const Tensor& x) { return concat({x, x}, 0); }));
  return cases;
}

}  // namespace mh
