// Sums of gradients.
#include "multihead/autograd/gradients.h"

#include "multihead/kernels/table.h"

namespace mh {

namespace {

// sum += g, both contiguous. A bf16 sum is rounded at every addition, as its type says.
void accumulate(const Tensor& sum, const Tensor& g) {
  const bool one_is_f16 = sum.dtype() != g.dtype() && (sum.dtype() == DType::f16 || g.dtype() == DType::f16);
  const Tensor part = one_is_f16 ? g.to(sum.dtype()) : g;
  const Device device = sum.device();
  kernels::kernels_of(device).accumulate({.x = part.view().data,
                                          .x_type = part.dtype(),
                                          .y = sum.view().data,
                                          .y_type = sum.dtype(),
                                          .count = sum.count()},
                                         queue_of(device));
}

// A view, or memory that an op handed to two of its inputs, is not ours to add to.
bool can_grow(const Tensor& sum) { return sum.owns_alone() && sum.is_contiguous() && !overlaps_itself(sum); }

}  // namespace

Tensor Gradients::find(const Tensor& x) const {
  const auto at = held_.find(x.trace());
  return at == held_.end() ? Tensor() : at->second;
}

Tensor Gradients::of(const Tensor& x) const {
  check(x.trace() != 0 && x.trace() != kCutTrace, "gradient: the tensor is not traced; expected a parameter; it is {}",
        x.shape());
  const Tensor g = find(x);
  check(static_cast<bool>(g), "gradient: nothing that was computed depends on the tensor; it is {}", x.shape());
  return g;
}

void Gradients::add(uint64_t trace, Tensor g) {
  Tensor& sum = held_[trace];
  if (!sum) {
    sum = std::move(g);
    return;
  }
  check(sum.shape() == g.shape(), "gradient: a part of the sum has another shape; expected {}; it is {}", sum.shape(),
        g.shape());
  if (!can_grow(sum)) {
    Tensor own = empty_like(sum);
    own.copy_from(sum);
    sum = own;
  }
  accumulate(sum, g.contiguous());
}

Tensor Gradients::take_to_grow(uint64_t trace) {
  const auto at = held_.find(trace);
  if (at == held_.end() || at->second.dtype() != DType::f32 || !can_grow(at->second)) return {};
  return take(trace);
}

Tensor Gradients::take(uint64_t trace) {
  const auto at = held_.find(trace);
  if (at == held_.end()) return {};
  Tensor g = std::move(at->second);
  held_.erase(at);
  return g;
}

}  // namespace mh
