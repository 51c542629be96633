// The step from an op to a kernel: that of the tensor's device, on its queue. Internal to ops.
#pragma once

#include <initializer_list>
#include <string_view>
#include <type_traits>
#include <vector>

#include "multihead/kernels/table.h"
#include "multihead/tensor/tensor.h"

namespace mh {

using kernels::Table;

// As in run(&Table::softmax_forward, {.x = x.view(), .y = y.view()}, x).
template <class Args>
void run(kernels::Kernel<Args> Table::*kernel, const std::type_identity_t<Args>& args, const Tensor& on) {
  const Device device = on.device();
  (kernels::kernels_of(device).*kernel)(args, queue_of(device));
}

// Memory on the device of `x`.
inline Tensor empty_on(const Tensor& x, const Shape& shape, DType dtype = DType::f32) {
  return empty(shape, dtype, x.device());
}
inline Tensor zeros_on(const Tensor& x, const Shape& shape, DType dtype = DType::f32) {
  return zeros(shape, dtype, x.device());
}

namespace detail {

// Throws: invalid_argument where two of the tensors that there are lie on different devices.
void check_devices(std::string_view op, std::initializer_list<const Tensor*> tensors);

// Whether an op reads what lists of numbers hold: on the CPU always, elsewhere where it was asked for.
bool reads_contents(const Tensor& x);

// A list as kernels of a device read it: itself on the CPU, else a copy that `held` keeps alive.
template <class T>
const T* placed(const std::vector<T>& list, Device device, std::vector<Tensor>& held) {
  if (device.is_cpu() || list.empty()) return list.data();
  const auto bytes = static_cast<int64_t>(list.size() * sizeof(T));
  held.push_back(wrap(const_cast<T*>(list.data()), Shape{bytes}, DType::u8).to(device));
  return held.back().view().as<const T>();
}

}  // namespace detail

}  // namespace mh
