// The differentiable views, split, concat and gather.
#include "multihead/ops/shape.h"

#include <algorithm>
#include <numeric>

#include "multihead/autograd/tape.h"
#include "multihead/ops/elementwise_run.h"
#include "multihead/ops/rows/embedding.h"
#include "multihead/ops/rows/rows.h"
#include "multihead/ops/run.h"

namespace mh {

Tensor reshape(const Tensor& x, const Shape& shape) {
  const Tensor y = x.detach().reshape(shape);
  return record("reshape", y, {x}, [from = x.shape()](const Tensor& dy) { return Grads{dy.reshape(from)}; });
}

Tensor transpose(const Tensor& x, int a, int b) {
  const Tensor y = x.detach().transpose(a, b);
  return record("transpose", y, {x}, [a, b](const Tensor& dy) { return Grads{dy.transpose(a, b)}; });
}

Tensor slice(const Tensor& x, int axis, int64_t begin, int64_t end) {
  const Tensor y = x.detach().slice(axis, begin, end);
  return record("slice", y, {x}, [from = x.shape(), axis, begin, end](const Tensor& dy) {
    const Tensor dx = zeros_on(dy, from, dy.dtype());
    dx.slice(axis, begin, end).copy_from(dy);
    return Grads{dx};
  });
}

Tensor broadcast_to(const Tensor& x, const Shape& shape) {
  const Tensor y = x.detach().broadcast_to(shape);
  return record("broadcast_to", y, {x},
                [from = x.shape()](const Tensor& dy) { return Grads{detail::sum_to(dy, from)}; });
}

std::vector<Tensor> split(const Tensor& x, int axis, const std::vector<int64_t>& sizes) {
  const int64_t whole = x.size(axis);
  const bool fits = std::all_of(sizes.begin(), sizes.end(), [&](int64_t n) { return n >= 0 && n <= whole; }) &&
                    std::accumulate(sizes.begin(), sizes.end(), int64_t{0}) == whole;
  check(fits, "split: the parts [{}] do not add up to axis {}; expected {}; x is {}", fmt::join(sizes, ", "), axis,
        whole, x.shape());
  std::vector<Tensor> parts;
  int64_t begin = 0;
  for (const int64_t size : sizes) {
    parts.push_back(x.detach().slice(axis, begin, begin + size));
    begin += size;
  }
  return record("split", std::move(parts), {x},
                [from = x.shape(), type = x.dtype(), device = x.device(), axis, sizes](const std::vector<Tensor>& dys) {
                  // Parts that were written side by side need no copy.
                  if (const Tensor joined = joined_view(dys, axis); joined && joined.shape() == from)
                    return Grads{joined};
                  const Tensor dx = empty(from, type, device);
                  int64_t at = 0;
                  for (size_t n = 0; n < sizes.size(); ++n) {
                    const Tensor part = dx.slice(axis, at, at + sizes[n]);
                    part.copy_from(dys[n] ? dys[n] : zeros(Shape{}, type, device).broadcast_to(part.shape()));
                    at += sizes[n];
                  }
                  return Grads{dx};
                });
}

Tensor concat(const std::vector<Tensor>& parts, int axis) {
  check(!parts.empty(), "concat: there are no parts; expected one or more");
  Shape shape = parts[0].shape();
  const int along = axis < 0 ? axis + shape.rank() : axis;
  check(along >= 0 && along < shape.rank(), "concat: there is no axis {}; the first part is {}", axis, shape);
  std::vector<int64_t> sizes;
  for (const Tensor& part : parts) {
    Shape same = part.shape();
    if (same.rank() == shape.rank()) same[along] = shape[along];
    check(same == shape && part.dtype() == parts[0].dtype(),
          "concat: parts differ in type or outside axis {}; the first is {} of {}, another {} of {}", axis, shape,
          name(parts[0].dtype()), part.shape(), name(part.dtype()));
    detail::check_devices("concat", {&parts[0], &part});
    sizes.push_back(part.size(along));
  }
  shape[along] = std::accumulate(sizes.begin(), sizes.end(), int64_t{0});

  const Tensor y = empty_on(parts[0], shape, parts[0].dtype());
  int64_t at = 0;
  for (const Tensor& part : parts) {
    y.slice(along, at, at + part.size(along)).copy_from(part.detach());
    at += part.size(along);
  }

  return record("concat", y, parts, [along, sizes](const Tensor& dy) {
    Grads out;
    int64_t begin = 0;
    for (const int64_t size : sizes) {
      out.push_back(dy.slice(along, begin, begin + size));
      begin += size;
    }
    return out;
  });
}

Tensor gather(const Tensor& x, const Tensor& ids) {
  detail::check_rows("gather", "x", x);
  detail::check_float("gather", "x", x);
  detail::check_indices("gather", "ids", ids, x.size(0));
  std::vector<int64_t> sizes;
  for (int axis = 0; axis < ids.rank(); ++axis) sizes.push_back(ids.size(axis));
  for (int axis = 1; axis < x.rank(); ++axis) sizes.push_back(x.size(axis));
  check(sizes.size() <= kMaxRank, "gather: the result has rank {}; expected at most {}; x is {}, ids is {}",
        sizes.size(), kMaxRank, x.shape(), ids.shape());

  int64_t each = 1;
  for (int axis = 1; axis < x.rank(); ++axis) each *= x.size(axis);
  const Tensor rows = reshape(x, Shape{x.size(0), each});
  return reshape(embedding(rows, ids), Shape(sizes));
}

}  // namespace mh
