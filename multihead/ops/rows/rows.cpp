// Flattening and refusals of ops on rows.
#include "multihead/ops/rows/rows.h"

#include "multihead/ops/run.h"

namespace mh::detail {

Tensor dense(const Tensor& x) { return x.detach().contiguous(); }

Tensor rows_of(const Tensor& x) {
  const int64_t width = x.size(-1);
  int64_t rows = 1;
  for (int axis = 0; axis + 1 < x.rank(); ++axis) rows *= x.size(axis);
  const Tensor plain = width > 1 && x.stride(-1) != 1 ? dense(x) : x.detach();
  return plain.reshape(Shape{rows, width});
}

void check_float(std::string_view op, std::string_view what, const Tensor& x) {
  if (x.dtype() == DType::f32 || x.dtype() == DType::bf16 || x.dtype() == DType::f16) return;
  fail(ErrorKind::unsupported, "{}: {} has elements of type {}; expected f32, bf16 or f16", op, what, name(x.dtype()));
}

void check_rows(std::string_view op, std::string_view what, const Tensor& x) {
  check(x.rank() >= 1, "{}: {} is a scalar; expected rank 1 or more", op, what);
}

void check_types(std::string_view op, DType from, DType to) {
  const auto mixes = [](DType t) { return t == DType::f32 || t == DType::bf16; };
  if (from == to || (mixes(from) && mixes(to))) return;
  fail(ErrorKind::unsupported, "{}: elements of type {} do not become {}; expected f32 and bf16, or one type for both",
       op, name(from), name(to));
}

void check_parameter(std::string_view op, std::string_view what, const Tensor& parameter, const Tensor& x) {
  if (!parameter) return;
  check(parameter.rank() == 1 && parameter.size(0) == x.size(-1),
        "{}: {} does not fit the last axis of x; expected [{}]; {} is {}, x is {}", op, what, x.size(-1), what,
        parameter.shape(), x.shape());
  if (parameter.dtype() != DType::f32)
    fail(ErrorKind::unsupported, "{}: {} has elements of type {}; expected f32", op, what, name(parameter.dtype()));
}

void check_indices(std::string_view op, std::string_view what, const Tensor& indices, int64_t limit) {
  if (indices.dtype() != DType::i32)
    fail(ErrorKind::unsupported, "{}: {} has elements of type {}; expected i32", op, what, name(indices.dtype()));
  if (!reads_contents(indices)) return;
  const Tensor flat = dense(indices).to(Device{});
  const int32_t* at = flat.data<int32_t>();
  for (int64_t n = 0; n < flat.count(); ++n) {
    check(at[n] >= 0 && at[n] < limit, "{}: element {} of {} is {}; expected 0 or more and below {}; {} is {}", op, n,
          what, at[n], limit, what, indices.shape());
  }
}

kernels::Activation kernel_activation(std::string_view op, Activation kind) {
  switch (kind) {
    case Activation::none: return kernels::Activation::none;
    case Activation::relu: return kernels::Activation::relu;
    case Activation::gelu: return kernels::Activation::gelu;
    case Activation::gelu_tanh: return kernels::Activation::gelu_tanh;
    case Activation::silu: return kernels::Activation::silu;
    case Activation::sigmoid: return kernels::Activation::sigmoid;
    case Activation::tanh: return kernels::Activation::tanh;
    case Activation::quick_gelu: return kernels::Activation::quick_gelu;
  }
  fail(ErrorKind::invalid_argument, "{}: activation {} is none of the eight", op, static_cast<int>(kind));
}

}  // namespace mh::detail
