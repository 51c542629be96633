// softmax, log_softmax, log_sum_exp, top_k: checks and the kernels' calls.
#include "multihead/ops/rows/softmax.h"

#include <algorithm>

#include "multihead/autograd/tape.h"
#include "multihead/ops/elementwise.h"
#include "multihead/ops/rows/rows.h"
#include "multihead/ops/run.h"

namespace mh {

namespace {

using detail::rows_of;

Tensor softmax_of(const char* op, const Tensor& x, bool log) {
  detail::check_rows(op, "x", x);
  detail::check_float(op, "x", x);

  const Tensor y = empty_like(x);
  if (y.count() > 0) {
    const Tensor from = rows_of(x), to = rows_of(y);
    run(&Table::softmax_forward, {.x = from.view(), .y = to.view(), .log = log}, x);
  }

  return record(op, y, {x}, [y, log](const Tensor& dy) {
    const Tensor dx = empty_like(y);
    if (dx.count() > 0) {
      const Tensor from = rows_of(y), d = rows_of(dy), to = rows_of(dx);
      run(&Table::softmax_backward, {.y = from.view(), .dy = d.view(), .dx = to.view(), .log = log}, y);
    }
    return Grads{dx};
  });
}

// The shape of x with another last axis, or without one.
Shape with_last(const Tensor& x, int64_t last) {
  Shape shape = x.shape();
  shape[shape.rank() - 1] = last;
  return shape;
}
Shape without_last(const Tensor& x) {
  std::vector<int64_t> sizes;
  for (int axis = 0; axis + 1 < x.rank(); ++axis) sizes.push_back(x.size(axis));
  return Shape(sizes);
}

}  // namespace

Tensor softmax(const Tensor& x) { return softmax_of("softmax", x, false); }
Tensor log_softmax(const Tensor& x) { return softmax_of("log_softmax", x, true); }

Tensor log_sum_exp(const Tensor& x) {
  detail::check_rows("log_sum_exp", "x", x);
  detail::check_float("log_sum_exp", "x", x);

  const Tensor y = empty_on(x, without_last(x)), from = rows_of(x);
  if (y.count() > 0) run(&Table::log_sum_exp, {.x = from.view(), .lse = y.view().as<float>()}, x);

  return record("log_sum_exp", y, {x}, [x = x.detach(), y](const Tensor& dy) {
    const Tensor p = exp(sub(x.to(DType::f32), y.unsqueeze(-1)));
    return Grads{mul(p, dy.unsqueeze(-1)).to(x.dtype())};
  });
}

TopK top_k(const Tensor& x, int64_t k) {
  detail::check_rows("top_k", "x", x);
  detail::check_float("top_k", "x", x);
  check(k >= 1 && k <= std::min(x.size(-1), kernels::kMostTop),
        "top_k: k is {}; expected 1 to {}, the smaller of the last axis and {}; x is {}", k,
        std::min(x.size(-1), kernels::kMostTop), kernels::kMostTop, x.shape());

  const Tensor values = empty_on(x, with_last(x, k)), indices = empty_on(x, with_last(x, k), DType::i32),
               from = rows_of(x);
  if (values.count() > 0)
    run(&Table::top_k,
        {.x = from.view(), .k = k, .values = values.view().as<float>(), .indices = indices.view().as<int32_t>()}, x);
  return {refuse_gradient("top_k", values, {x}), indices};
}

}  // namespace mh
