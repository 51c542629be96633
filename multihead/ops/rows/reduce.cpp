// sum, mean, max: which axes, what shape, and what becomes of dy.
#include "multihead/ops/rows/reduce.h"

#include "multihead/autograd/tape.h"
#include "multihead/ops/elementwise_run.h"
#include "multihead/ops/rows/rows.h"

namespace mh {

namespace {

using detail::run_binary;
using kernels::Binary;
using kernels::Unary;

// What a call reduces: the axes, the shape with them kept as 1, and the one it gives.
struct Plan {
  std::vector<bool> over;
  Shape kept, result;
  int64_t elements = 1;  // in each sum
};

Plan plan_of(const char* op, const Tensor& x, const ReduceOptions& options) {
  detail::check_float(op, "x", x);
  Plan plan{
      .over = std::vector<bool>(static_cast<size_t>(x.rank()), options.axes.empty()), .kept = x.shape(), .result = {}};
  for (const int axis : options.axes) {
    const int at = axis < 0 ? axis + x.rank() : axis;
    check(at >= 0 && at < x.rank(), "{}: x has no axis {}; expected -{} to {}; x is {}", op, axis, x.rank(),
          x.rank() - 1, x.shape());
    check(!plan.over[static_cast<size_t>(at)], "{}: axis {} is named twice; x is {}", op, axis, x.shape());
    plan.over[static_cast<size_t>(at)] = true;
  }
  std::vector<int64_t> left;
  for (int axis = 0; axis < x.rank(); ++axis) {
    if (plan.over[static_cast<size_t>(axis)]) {
      plan.elements *= x.size(axis);
      plan.kept[axis] = 1;
    }
    if (options.keep || !plan.over[static_cast<size_t>(axis)]) left.push_back(plan.kept[axis]);
  }
  plan.result = Shape(left);
  return plan;
}

}  // namespace

Tensor sum(const Tensor& x, const ReduceOptions& options) {
  const Plan plan = plan_of("sum", x, options);
  const Tensor y = detail::run_reduce(x, plan.over, false).to(x.dtype()).reshape(plan.result);
  return record("sum", y, {x}, [plan, shape = x.shape()](const Tensor& dy) {
    return Grads{dy.reshape(plan.kept).broadcast_to(shape)};
  });
}

Tensor mean(const Tensor& x, const ReduceOptions& options) {
  const Plan plan = plan_of("mean", x, options);
  const float share = 1.0f / static_cast<float>(plan.elements);
  const Tensor total = detail::run_reduce(x, plan.over, false);
  // 0 · infinity: the mean of nothing is NaN.
  const Tensor y = detail::run_unary(Unary::copy, total, DType::f32, share).to(x.dtype()).reshape(plan.result);
  return record("mean", y, {x}, [plan, share, shape = x.shape()](const Tensor& dy) {
    return Grads{detail::run_unary(Unary::copy, dy, dy.dtype(), share).reshape(plan.kept).broadcast_to(shape)};
  });
}

Tensor max(const Tensor& x, const ReduceOptions& options) {
  const Plan plan = plan_of("max", x, options);
  const Tensor most = detail::run_reduce(x, plan.over, true).to(x.dtype());
  return record("max", most.reshape(plan.result), {x}, [plan, most, x = x.detach()](const Tensor& dy) {
    const Tensor chosen = run_binary(Binary::equal, x, most);
    const Tensor many = detail::run_reduce(chosen, plan.over, false).to(x.dtype());
    return Grads{run_binary(Binary::mul, chosen, run_binary(Binary::div, dy.reshape(plan.kept), many))};
  });
}

}  // namespace mh
