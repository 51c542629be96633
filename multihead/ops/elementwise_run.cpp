// Views and calls of the elementwise and reducing kernels.
#include "multihead/ops/elementwise_run.h"

#include <algorithm>

#include "multihead/ops/rows/rows.h"
#include "multihead/ops/run.h"

namespace mh::detail {

Shape broadcast_shape(const Shape& a, const Shape& b) {
  const int rank = std::max(a.rank(), b.rank());
  std::vector<int64_t> sizes(static_cast<size_t>(rank), 1);
  for (int axis = 0; axis < rank; ++axis) {
    const int i = axis - (rank - a.rank()), j = axis - (rank - b.rank());
    const int64_t m = i < 0 ? 1 : a[i], n = j < 0 ? 1 : b[j];
    sizes[static_cast<size_t>(axis)] = m == n || n == 1 ? m : m == 1 ? n : -1;
  }
  return Shape(sizes);
}

namespace {

// x repeated to `shape`, with a last stride of 1 or 0.
Tensor repeated(const Tensor& x, const Shape& shape) {
  const bool walks = x.rank() == 0 || x.size(-1) <= 1 || x.stride(-1) == 1;
  return (walks ? x.detach() : dense(x)).broadcast_to(shape);
}

// An axis of size 1 has any stride; the kernel wants 1 or 0 along the last.
View along_last(const Tensor& x) {
  View view = x.view();
  if (view.rank > 0 && view.size[view.rank - 1] == 1) view.stride[view.rank - 1] = 0;
  return view;
}

}  // namespace

Tensor run_binary(kernels::Binary kind, const Tensor& a, const Tensor& b, float factor) {
  const Shape shape = broadcast_shape(a.shape(), b.shape());
  const Tensor y = empty_on(a, shape, a.dtype());
  if (y.count() == 0) return y;
  const bool flat = a.shape() == shape && b.shape() == shape && a.is_contiguous() && b.is_contiguous();
  const Shape all{y.count()};
  const Tensor x = flat ? a.detach().reshape(all) : repeated(a, shape);
  const Tensor z = flat ? b.detach().reshape(all) : repeated(b, shape);
  const Tensor to = flat ? y.reshape(all) : y;
  run(&Table::binary, {.kind = kind, .a = along_last(x), .b = along_last(z), .y = to.view(), .factor = factor}, y);
  return y;
}

Tensor run_unary(kernels::Unary kind, const Tensor& x, DType type, float factor) {
  const Tensor y = empty(x.shape(), type, x.device()), from = dense(x);
  run(&Table::unary,
      {.kind = kind,
       .x = from.view().data,
       .x_type = x.dtype(),
       .y = y.view().data,
       .y_type = type,
       .count = y.count(),
       .factor = factor},
      y);
  return y;
}

Tensor run_reduce(const Tensor& x, const std::vector<bool>& over, bool max) {
  Tensor from = dense(x);
  Shape shape = x.shape();
  for (int axis = x.rank() - 1; axis >= 0; --axis) {
    if (!over[static_cast<size_t>(axis)]) continue;
    int64_t outer = 1, middle = 1, inner = 1;
    for (int after = axis + 1; after < shape.rank(); ++after) inner *= shape[after];
    for (; axis >= 0 && over[static_cast<size_t>(axis)]; --axis) {
      middle *= shape[axis];
      shape[axis] = 1;
    }
    for (int before = 0; before <= axis; ++before) outer *= shape[before];
    const Tensor to = empty_on(x, shape);
    if (to.count() > 0)
      run(&Table::reduce,
          {.x = from.view().data,
           .x_type = from.dtype(),
           .outer = outer,
           .middle = middle,
           .inner = inner,
           .y = to.view().as<float>(),
           .max = max},
          to);
    from = to;
  }
  return from.to(DType::f32);
}

Tensor sum_to(const Tensor& dy, const Shape& shape) {
  if (dy.shape() == shape) return dy;
  std::vector<bool> over(static_cast<size_t>(dy.rank()));
  for (int axis = 0; axis < dy.rank(); ++axis) {
    const int own = axis - (dy.rank() - shape.rank());
    over[static_cast<size_t>(axis)] = own < 0 || (shape[own] == 1 && dy.size(axis) != 1);
  }
  return run_reduce(dy, over, false).to(dy.dtype()).reshape(shape);
}

}  // namespace mh::detail
