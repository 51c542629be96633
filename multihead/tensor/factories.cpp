// Where tensors come from.
#include <algorithm>

#include "multihead/base/checked_math.h"
#include "multihead/base/out_of_memory.h"
#include "multihead/base/parallel.h"
#include "multihead/base/random.h"
#include "multihead/tensor/convert.h"
#include "multihead/tensor/storage.h"
#include "multihead/tensor/tensor.h"

namespace mh {

namespace {

// Bytes of a dense tensor.
int64_t bytes_of(std::string_view op, const Shape& shape, DType dtype) {
  for (int axis = 0; axis < shape.rank(); ++axis) {
    check(shape[axis] >= 0, "{}: size {} of axis {} is negative; expected 0 or more; the shape is {}", op, shape[axis],
          axis, shape);
  }
  const std::optional<int64_t> bytes = checked_multiply(shape.count(), size_of(dtype));
  check(bytes.has_value(), "{}: the size in bytes overflows; expected less than 2^63; the shape is {}, the elements {}",
        op, shape, name(dtype));
  return *bytes;
}

Tensor wrap_view(const View& view, const Shape& shape) {
  check(view.data != nullptr || shape.count() == 0, "wrap: the data is null; expected {} elements; the shape is {}",
        shape.count(), shape);
  check(reinterpret_cast<uintptr_t>(view.data) % static_cast<uintptr_t>(size_of(view.dtype)) == 0,
        "wrap: the data is not aligned to its elements of type {}; expected a multiple of {} bytes; the shape is {}",
        name(view.dtype), size_of(view.dtype), shape);
  return {std::make_shared<Storage>(view.data), view};
}

constexpr int64_t kNumbersPerTask = 1 << 14;

}  // namespace

View dense_view(void* data, const Shape& shape, DType dtype) {
  View view{.data = data, .dtype = dtype, .rank = shape.rank()};
  int64_t step = 1;
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    view.size[axis] = shape[axis];
    view.stride[axis] = step;
    if (__builtin_mul_overflow(step, std::max<int64_t>(shape[axis], 1), &step)) step = 0;  // an axis of 0 is elsewhere
  }
  return view;
}

Tensor empty(const Shape& shape, DType dtype, Device device) {
  const auto bytes = static_cast<size_t>(bytes_of("empty", shape, dtype));
  std::shared_ptr<Storage> storage;
  try {
    storage = std::make_shared<Storage>(bytes, device);
  } catch (const OutOfMemory&) {
    throw OutOfMemory("empty", bytes, fmt::format("{} {}", name(dtype), shape));
  }
  void* data = storage->data;
  return {std::move(storage), dense_view(data, shape, dtype)};
}

Tensor zeros(const Shape& shape, DType dtype, Device device) { return full(shape, 0, dtype, device); }

Tensor full(const Shape& shape, double value, DType dtype, Device device) {
  Tensor out = empty(shape, dtype, device);
  if (out.count() > 0) memory_of(device).fill(out.view(), value, queue_of(device));
  return out;
}

Tensor empty_like(const Tensor& other) { return empty(other.shape(), other.dtype(), other.device()); }

Tensor randn(const Shape& shape, uint64_t seed, DType dtype, Device device) {
  if (!device.is_cpu()) return randn(shape, seed, dtype).to(device);
  check(is_float(dtype), "randn: elements of type {}; expected f32, bf16, f16 or f64; the shape is {}", name(dtype),
        shape);
  Tensor out = empty(shape, dtype);
  const int64_t count = out.count();
  visit_any(dtype, [&]<class T>() {
    T* data = out.data<T>();
    parallel_for((count + kNumbersPerTask - 1) / kNumbersPerTask, [&](int64_t task) {
      const int64_t end = std::min(count, (task + 1) * kNumbersPerTask);
      for (int64_t i = task * kNumbersPerTask; i < end; i += 4) {
        const std::array<double, 4> four = random_normal(seed, static_cast<uint64_t>(i) / 4);
        for (int64_t j = 0; j < std::min<int64_t>(4, end - i); ++j)
          data[i + j] = convert<T>(four[static_cast<size_t>(j)]);
      }
    });
  });
  return out;
}

Tensor wrap(void* data, const Shape& shape, DType dtype) {
  bytes_of("wrap", shape, dtype);
  return wrap_view(dense_view(data, shape, dtype), shape);
}

Tensor wrap(void* data, const Shape& shape, const std::vector<int64_t>& strides, DType dtype) {
  check(static_cast<int>(strides.size()) == shape.rank(),
        "wrap: {} strides for {} axes; expected one for each; the shape is {}", strides.size(), shape.rank(), shape);
  bytes_of("wrap", shape, dtype);
  View view = dense_view(data, shape, dtype);
  int64_t reach = 0;
  bool fits = true;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    const int64_t stride = strides[static_cast<size_t>(axis)];
    int64_t span = 0;
    fits = fits && stride != INT64_MIN &&
           !__builtin_mul_overflow(std::max<int64_t>(shape[axis], 1), stride < 0 ? -stride : stride, &span) &&
           !__builtin_add_overflow(reach, span, &reach);
    view.stride[axis] = stride;
  }
  fits = fits && checked_multiply(reach, size_of(dtype)).has_value();
  check(fits, "wrap: the strides reach past 2^63 bytes; expected less; the shape is {}", shape);
  return wrap_view(view, shape);
}

}  // namespace mh
