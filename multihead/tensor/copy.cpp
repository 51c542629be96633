// Copies of a tensor's elements, in the same type or another.
#include <algorithm>
#include <cstring>
#include <limits>

#include "multihead/base/parallel.h"
#include "multihead/tensor/convert.h"
#include "multihead/tensor/copy.h"
#include "multihead/tensor/memory.h"
#include "multihead/tensor/storage.h"
#include "multihead/tensor/tensor.h"

namespace mh {

namespace {

constexpr int64_t kElementsPerTask = 1 << 15;

// Element offset of row `row`, rows being counted over all axes but the last.
int64_t row_offset(const View& view, int64_t row) {
  int64_t offset = 0;
  for (int axis = view.rank - 2; axis >= 0; --axis) {
    offset += row % view.size[axis] * view.stride[axis];
    row /= view.size[axis];
  }
  return offset;
}

template <class To, class From>
void copy_row(To* to, int64_t to_step, const From* from, int64_t from_step, int64_t count) {
  if constexpr (std::is_same_v<To, From>) {
    if (to_step == 1 && from_step == 1) {
      std::memcpy(to, from, static_cast<size_t>(count) * sizeof(To));
      return;
    }
  }
  for (int64_t i = 0; i < count; ++i) to[i * to_step] = convert<To>(from[i * from_step]);
}

template <class To, class From>
void copy_rows(const View& to, const View& from) {
  const int last = to.rank - 1;
  const int64_t width = to.size[last];
  int64_t rows = 1;
  for (int axis = 0; axis < last; ++axis) rows *= to.size[axis];
  const int64_t rows_per_task = std::max<int64_t>(1, kElementsPerTask / width);
  const int64_t row_tasks = (rows + rows_per_task - 1) / rows_per_task;
  const int64_t cuts = rows_per_task > 1 ? 1 : (width + kElementsPerTask - 1) / kElementsPerTask;
  parallel_for(row_tasks * cuts, [&](int64_t task) {
    const int64_t first = task / cuts * rows_per_task;
    const int64_t begin = task % cuts * kElementsPerTask;
    const int64_t count = cuts == 1 ? width : std::min(kElementsPerTask, width - begin);
    for (int64_t row = first; row < std::min(rows, first + rows_per_task); ++row) {
      copy_row(to.as<To>() + row_offset(to, row) + begin * to.stride[last], to.stride[last],
               from.as<From>() + row_offset(from, row) + begin * from.stride[last], from.stride[last], count);
    }
  });
}

template <class T>
constexpr bool is_number = std::is_integral_v<T> && !std::is_same_v<T, bool>;

template <class To, class From>
void check_range(const View& from) {
  if constexpr (is_number<To> && is_number<From> && !std::is_same_v<To, From>) {
    constexpr int64_t low = std::numeric_limits<To>::min(), high = std::numeric_limits<To>::max();
    const int last = from.rank - 1;
    int64_t rows = 1;
    for (int axis = 0; axis < last; ++axis) rows *= from.size[axis];
    for (int64_t n = 0; n < rows * from.size[last]; ++n) {
      const int64_t row = n / from.size[last], column = n % from.size[last];
      const auto value = static_cast<int64_t>(from.as<From>()[row_offset(from, row) + column * from.stride[last]]);
      check(value >= low && value <= high, "copy_from: element {} is {}; expected {} to {}, as {} holds", n, value, low,
            high, name(dtype_of<To>()));
    }
  }
}

bool is_dense(const View& view) {
  int64_t step = 1;
  for (int axis = view.rank - 1; axis >= 0; --axis) {
    if (view.size[axis] != 1 && view.stride[axis] != step) return false;
    step *= view.size[axis];
  }
  return true;
}

// As one row where both are dense; rank 1 at least.
void flatten(View& to, View& from) {
  if (to.rank > 0 && !(is_dense(to) && is_dense(from))) return;
  int64_t count = 1;
  for (int axis = 0; axis < to.rank; ++axis) count *= to.size[axis];
  for (View* view : {&to, &from}) {
    view->rank = 1;
    view->size[0] = count;
    view->stride[0] = 1;
  }
}

}  // namespace

void copy_elements(const View& whole_to, const View& whole_from) {
  View to = whole_to, from = whole_from;
  flatten(to, from);
  visit_any(to.dtype, [&]<class To>() {
    visit_any(from.dtype, [&]<class From>() {
      check_range<To, From>(from);
      copy_rows<To, From>(to, from);
    });
  });
}

void Tensor::copy_from(const Tensor& other) const {
  check(shape() == other.shape(), "copy_from: the shapes differ; expected {}; the other is {}", shape(), other.shape());
  check(*this && other, "copy_from: a tensor is empty; expected memory on both sides; the shape is {}", shape());
  if (count() == 0) return;
  check(!overlaps_itself(*this),
        "copy_from: elements of the destination share memory; expected one place for each; the shape is {}", shape());
  const Device here = device();
  if (here != other.device()) return copy_from(other.to(here));
  if (overlaps(*this, other)) return copy_from(other.clone());
  memory_of(here).convert(view_, other.view_, queue_of(here));
}

Tensor Tensor::clone() const {
  if (!*this) return {};
  Tensor out = empty_like(*this);
  out.copy_from(*this);
  return trace_ == 0 ? out : out.traced(kCutTrace);
}

Tensor Tensor::contiguous() const { return is_contiguous() ? *this : clone(); }

Tensor Tensor::to(DType dtype) const {
  if (dtype == this->dtype() || !*this) return *this;
  Tensor out = empty(shape(), dtype, device());
  out.copy_from(*this);
  return trace_ == 0 ? out : out.traced(kCutTrace);
}

Tensor Tensor::to(Device wanted) const {
  const Device here = device();
  if (wanted == here || !*this) return *this;
  check(here.is_cpu() || wanted.is_cpu(),
        "to: the tensor is {}'s and {} asks for it; expected a copy by way of the CPU; {}", mh::name(here),
        mh::name(wanted), shape());
  const Tensor from = contiguous(), out = empty(shape(), dtype(), wanted);
  const Device other = here.is_cpu() ? wanted : here;
  const Memory& memory = memory_of(other);
  const auto bytes = static_cast<size_t>(count() * size_of(dtype()));
  if (bytes > 0) memory.copy(out.view_.data, from.view_.data, bytes, queue_of(other));
  memory.wait(queue_of(other));
  return trace_ == 0 ? out : out.traced(kCutTrace);
}

}  // namespace mh
