// A tensor: shared memory with a shape. Knows no arithmetic.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "multihead/base/device.h"
#include "multihead/tensor/shape.h"

namespace mh {

// Memory: owned (64-byte aligned) or the caller's.
struct Storage;

// The trace of a view or copy that Tensor's own methods made of a traced tensor: no gradient can find its way back.
inline constexpr uint64_t kCutTrace = ~uint64_t{0};

// A handle: copies share memory. A default Tensor is empty: it has no memory and tests false.
class Tensor {
 public:
  Tensor() = default;
  Tensor(std::shared_ptr<Storage> storage, const View& view) : storage_(std::move(storage)), view_(view) {}

  explicit operator bool() const { return view_.data != nullptr || storage_ != nullptr; }

  DType dtype() const { return view_.dtype; }
  // Where the memory lies; an empty tensor's is the CPU.
  Device device() const;
  int rank() const { return view_.rank; }
  // Negative axes count from the end. Throws: invalid_argument past the rank.
  int64_t size(int axis) const;
  int64_t stride(int axis) const;
  Shape shape() const;
  int64_t count() const { return shape().count(); }
  const View& view() const { return view_; }
  bool is_contiguous() const;

  // The first element. Throws: invalid_argument where T is not the type of the elements, or the memory not the CPU's.
  template <class T>
  T* data() const {
    require(dtype_of<T>());
    return static_cast<T*>(view_.data);
  }
  // One element, any type read as a double. Throws: invalid_argument, also where the memory is not the CPU's.
  double item(std::initializer_list<int64_t> index) const;

  // Views: no copy. Throws: invalid_argument, with the shape, where the axes or bounds do not fit.
  Tensor transpose(int a, int b) const;
  Tensor slice(int axis, int64_t begin, int64_t end) const;
  Tensor select(int axis, int64_t index) const;
  Tensor unsqueeze(int axis) const;
  // To a larger shape: axes of size 1, and missing leading ones, repeat with stride 0.
  Tensor broadcast_to(const Shape& shape) const;
  // A view where strides allow it, else a contiguous copy. One size may be -1: what is left.
  Tensor reshape(const Shape& shape) const;

  // The identity under which gradients are gathered (autograd/tape.h gives them out), 0: none. Copies of the handle
  // keep it. What the methods of this class make of a traced tensor has kCutTrace, which an op refuses to record: the
  // ops of ops/shape.h carry gradients.
  uint64_t trace() const { return trace_; }
  Tensor traced(uint64_t trace) const;
  // The same memory without a trace.
  Tensor detach() const { return traced(0); }
  // Whether no other tensor shares this one's memory.
  bool owns_alone() const { return storage_.use_count() == 1; }

  Tensor contiguous() const;
  Tensor clone() const;
  // Copy in another element type (itself where it is that already). Floats round once, to nearest even; to an integer
  // they are cut towards zero and kept within its range. Throws: invalid_argument where an integer does not fit into a
  // narrower type of integers.
  Tensor to(DType dtype) const;
  // Copy in the memory of another device (itself where it lies there), made when it is returned. One of the two is the
  // CPU.
  Tensor to(Device device) const;
  // Every element, in this tensor's type; the two may share memory. Throws: invalid_argument where the shapes differ,
  // two elements here share memory, or an integer does not fit this tensor's type; nothing is written then.
  void copy_from(const Tensor& other) const;

 private:
  friend Tensor joined_view(const std::vector<Tensor>& parts, int axis);
  void require(DType wanted) const;
  void require_cpu(std::string_view op) const;
  Tensor derived(const View& view) const;
  std::shared_ptr<Storage> storage_;
  View view_;
  uint64_t trace_ = 0;
};

// Throws: invalid_argument for a negative size or one whose bytes overflow; OutOfMemory, with the bytes.
Tensor empty(const Shape& shape, DType dtype = DType::f32, Device device = {});
Tensor zeros(const Shape& shape, DType dtype = DType::f32, Device device = {});
Tensor full(const Shape& shape, double value, DType dtype = DType::f32, Device device = {});
Tensor empty_like(const Tensor& other);  // on its device
// N(0, 1) by Philox: the same numbers on every machine.
Tensor randn(const Shape& shape, uint64_t seed, DType dtype = DType::f32, Device device = {});
// The caller's memory, the CPU's; strides in elements, of any sign. The caller keeps it alive.
// Throws: invalid_argument where it is null with elements to hold, or not aligned to them.
Tensor wrap(void* data, const Shape& shape, DType dtype);
Tensor wrap(void* data, const Shape& shape, const std::vector<int64_t>& strides, DType dtype);

template <class T>
Tensor tensor(const std::vector<T>& values, const Shape& shape, Device device = {}) {
  Tensor out = empty(shape, dtype_of<T>());
  check(static_cast<int64_t>(values.size()) == out.count(), "tensor: {} values do not fill the shape {}", values.size(),
        shape);
  for (size_t i = 0; i < values.size(); ++i) out.template data<T>()[i] = values[i];
  return out.to(device);
}

// The view of which `parts` are consecutive parts along an axis, where they are that: of one memory, one behind the
// other; else an empty tensor.
Tensor joined_view(const std::vector<Tensor>& parts, int axis);

// Whether an element of one shares bytes with an element of the other. Interleaved views, such as the q, k and v of a
// packed projection, do not. Strides that follow no nesting may be answered with a yes too many, never with a no.
bool overlaps(const Tensor& a, const Tensor& b);
// The same of two elements of one tensor, as in a broadcast view.
bool overlaps_itself(const Tensor& x);

// Values with the shape, long axes cut: "f32 [2, 3]\n[[…]]".
std::string to_string(const Tensor& tensor);

}  // namespace mh
