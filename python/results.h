// Where a call of attention writes: arrays of the caller, or fresh ones.
#pragma once

#include <optional>
#include <string_view>

#include "multihead/ops/attention/attention.h"
#include "python/array.h"

namespace mh::python {

// (B, H, Tq, Dv), or packed (T, H, Dv); a q that has no such rank is refused by the op itself.
inline Shape output_shape(const Tensor& q, int64_t Dv) {
  Shape shape = q.shape();
  if (shape.rank() > 0) shape[shape.rank() - 1] = Dv;
  return shape;
}

inline Shape lse_shape(const Tensor& q) {
  if (q.rank() == 4) return {q.size(0), q.size(1), q.size(2)};
  if (q.rank() == 3) return {q.size(1), q.size(0)};
  return {};
}

// What a call writes: the caller's array, or fresh ones like q.
class Results {
 public:
  Results(std::string_view op, const Array& q, const Shape& shape, nb::handle out) : out_(nb::borrow(out)) {
    if (out_.is_none())
      fresh_.emplace(q, shape, q.tensor().dtype());
    else
      given_.emplace(Site{op, "out"}, out, Access::write);
  }
  void want_lse(const Array& q, const Shape& shape) { lse_.emplace(q, shape, DType::f32); }

  AttentionResult tensors() const {
    return {fresh_ ? fresh_->tensor() : given_->tensor(), lse_ ? lse_->tensor() : Tensor{}};
  }
  // Each once.
  nb::object release_o() { return fresh_ ? fresh_->release() : std::move(out_); }
  nb::object release_lse() { return lse_->release(); }

 private:
  nb::object out_;
  std::optional<Output> fresh_, lse_;
  std::optional<Array> given_;
};

}  // namespace mh::python
