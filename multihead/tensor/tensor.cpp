// Views of a tensor: new sizes and strides over the same memory.
#include "multihead/tensor/tensor.h"

#include <algorithm>

#include "multihead/tensor/storage.h"

namespace mh {

namespace {

// The axis counted from the front; `rank` is one more than the last that may be named.
int resolve(std::string_view op, int axis, int rank, const Tensor& x) {
  const int from_front = axis < 0 ? axis + rank : axis;
  check(from_front >= 0 && from_front < rank, "{}: axis {} does not exist; expected {} to {}; the shape is {}", op,
        axis, -rank, rank - 1, x.shape());
  return from_front;
}

void* moved(const View& view, int64_t elements) {
  if (view.data == nullptr) return nullptr;
  return static_cast<char*>(view.data) + elements * size_of(view.dtype);
}

// With one size of -1 put right.
Shape complete(const Tensor& x, Shape shape) {
  int open = -1;
  int64_t rest = 1;
  bool fits = true;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (shape[axis] == -1 && open == -1) {
      open = axis;
    } else {
      fits = fits && shape[axis] >= 0 && !__builtin_mul_overflow(rest, shape[axis], &rest);
    }
  }
  const Shape asked = shape;
  if (fits && open != -1 && rest != 0) shape[open] = x.count() / rest;
  check(fits && (open == -1 || rest != 0) && shape.count() == x.count(),
        "reshape: {} does not hold the {} elements; expected the same number; the shape is {}", asked, x.count(),
        x.shape());
  return shape;
}

// Strides that walk the elements of `from` in order under the sizes of `to`. Old axes that lie densely behind each
// other form a run; new axes must divide the runs without crossing from one into the next.
bool restride(const View& from, View& to) {
  int run_end = from.rank;  // old axes [run_begin, run_end) are the run at hand, from the back
  int axis = to.rank - 1;
  while (run_end > 0) {
    if (from.size[run_end - 1] == 1) {
      --run_end;
      continue;
    }
    int run_begin = run_end - 1;
    int64_t elements = from.size[run_begin];
    const int64_t unit = from.stride[run_begin];
    for (int next = run_begin - 1; next >= 0; --next) {
      if (from.size[next] != 1 && from.stride[next] != unit * elements) break;
      run_begin = next;
      elements *= from.size[next];
    }
    int64_t step = unit;
    int64_t filled = 1;
    while (filled < elements) {
      if (axis < 0) return false;
      to.stride[axis] = step;
      step *= to.size[axis];
      filled *= to.size[axis];
      --axis;
    }
    if (filled != elements) return false;
    run_end = run_begin;
  }
  for (; axis >= 0; --axis) to.stride[axis] = 1;  // sizes of 1
  return true;
}

}  // namespace

int64_t Tensor::size(int axis) const { return view_.size[resolve("Tensor::size", axis, rank(), *this)]; }

int64_t Tensor::stride(int axis) const { return view_.stride[resolve("Tensor::stride", axis, rank(), *this)]; }

Shape Tensor::shape() const { return Shape::of(view_); }

bool Tensor::is_contiguous() const {
  if (count() == 0) return true;
  int64_t step = 1;
  for (int axis = rank() - 1; axis >= 0; --axis) {
    if (view_.size[axis] != 1 && view_.stride[axis] != step) return false;
    step *= view_.size[axis];
  }
  return true;
}

Device Tensor::device() const { return storage_ ? storage_->device : Device{}; }

void Tensor::require_cpu(std::string_view op) const {
  const Device here = device();
  check(here.is_cpu(), "{}: the memory is {}'s; expected the CPU's, as to(Device{{}}) gives; the shape is {}", op,
        mh::name(here), shape());
}

void Tensor::require(DType wanted) const {
  require_cpu("Tensor::data");
  check(dtype() == wanted, "Tensor::data: the elements are {}; {} was asked for; the shape is {}", name(dtype()),
        name(wanted), shape());
}

double Tensor::item(std::initializer_list<int64_t> index) const {
  check(static_cast<int>(index.size()) == rank() && view_.data != nullptr,
        "Tensor::item: {} indices into a tensor of {} axes; expected one for each; the shape is {}", index.size(),
        rank(), shape());
  require_cpu("Tensor::item");
  int64_t offset = 0;
  int axis = 0;
  for (const int64_t i : index) {
    check(i >= 0 && i < view_.size[axis], "Tensor::item: index {} of axis {} is out of bounds; the shape is {}", i,
          axis, shape());
    offset += i * view_.stride[axis++];
  }
  return visit_any(dtype(), [&]<class T>() {
    const T value = static_cast<const T*>(view_.data)[offset];
    if constexpr (std::is_arithmetic_v<T>) {
      return static_cast<double>(value);
    } else {
      return static_cast<double>(static_cast<float>(value));
    }
  });
}

Tensor Tensor::traced(uint64_t trace) const {
  Tensor out = *this;
  out.trace_ = trace;
  return out;
}

Tensor Tensor::derived(const View& view) const {
  Tensor out{storage_, view};
  if (trace_ != 0) out.trace_ = kCutTrace;
  return out;
}

Tensor Tensor::transpose(int a, int b) const {
  View view = view_;
  const int i = resolve("transpose", a, rank(), *this);
  const int j = resolve("transpose", b, rank(), *this);
  std::swap(view.size[i], view.size[j]);
  std::swap(view.stride[i], view.stride[j]);
  return derived(view);
}

Tensor Tensor::slice(int axis, int64_t begin, int64_t end) const {
  const int i = resolve("slice", axis, rank(), *this);
  check(0 <= begin && begin <= end && end <= view_.size[i],
        "slice: [{}, {}) of axis {} is out of bounds; expected 0 <= begin <= end <= {}; the shape is {}", begin, end,
        axis, view_.size[i], shape());
  View view = view_;
  view.size[i] = end - begin;
  if (begin < end) view.data = moved(view_, begin * view.stride[i]);  // else past the last element
  return derived(view);
}

Tensor Tensor::select(int axis, int64_t index) const {
  const int i = resolve("select", axis, rank(), *this);
  check(0 <= index && index < view_.size[i],
        "select: index {} of axis {} is out of bounds; expected 0 to {}; the shape is {}", index, axis,
        view_.size[i] - 1, shape());
  View view = view_;
  view.data = count() == 0 ? view.data : moved(view_, index * view.stride[i]);
  std::copy(view.size.begin() + i + 1, view.size.end(), view.size.begin() + i);
  std::copy(view.stride.begin() + i + 1, view.stride.end(), view.stride.begin() + i);
  view.size[kMaxRank - 1] = 1;
  view.stride[kMaxRank - 1] = 0;
  --view.rank;
  return derived(view);
}

Tensor Tensor::unsqueeze(int axis) const {
  check(rank() < kMaxRank, "unsqueeze: no axis can be added; expected fewer than {}; the shape is {}", kMaxRank,
        shape());
  const int i = resolve("unsqueeze", axis, rank() + 1, *this);
  View view = view_;
  std::copy_backward(view.size.begin() + i, view.size.end() - 1, view.size.end());
  std::copy_backward(view.stride.begin() + i, view.stride.end() - 1, view.stride.end());
  ++view.rank;
  view.size[i] = 1;
  view.stride[i] = i + 1 < view.rank ? view.size[i + 1] * view.stride[i + 1] : 1;
  return derived(view);
}

Tensor Tensor::broadcast_to(const Shape& shape) const {
  View view{.data = view_.data, .dtype = dtype(), .rank = shape.rank()};
  const int lead = shape.rank() - rank();
  bool fits = lead >= 0;
  for (int axis = 0; fits && axis < shape.rank(); ++axis) {
    const bool here = axis >= lead;
    const int64_t size = here ? view_.size[axis - lead] : 1;
    fits = shape[axis] >= 0 && (size == shape[axis] || size == 1);
    view.size[axis] = shape[axis];
    view.stride[axis] = here && size == shape[axis] ? view_.stride[axis - lead] : 0;
  }
  check(fits, "broadcast_to: {} does not repeat to {}; expected axes that are equal or 1", this->shape(), shape);
  static_cast<void>(shape.count());  // throws where the product overflows
  return derived(view);
}

Tensor Tensor::reshape(const Shape& asked) const {
  const Shape shape = complete(*this, asked);
  View view = dense_view(view_.data, shape, dtype());
  if (count() == 0 || restride(view_, view)) return derived(view);
  return contiguous().reshape(shape);
}

Tensor joined_view(const std::vector<Tensor>& parts, int axis) {
  if (parts.empty() || !parts[0]) return {};
  View view = parts[0].view_;
  const int along = resolve("joined_view", axis, view.rank, parts[0]);
  view.size[along] = 0;
  for (const Tensor& part : parts) {
    bool fits = part && part.storage_ == parts[0].storage_ && part.dtype() == view.dtype && part.rank() == view.rank;
    // A part of nothing lies anywhere.
    fits =
        fits && (part.view_.size[along] == 0 || part.view_.data == moved(view, view.size[along] * view.stride[along]));
    for (int other = 0; fits && other < view.rank; ++other) {
      fits = part.view_.stride[other] == view.stride[other] &&
             (other == along || part.view_.size[other] == view.size[other]);
    }
    if (!fits) return {};
    view.size[along] += part.view_.size[along];
  }
  return parts[0].derived(view);
}

}  // namespace mh
