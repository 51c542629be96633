// The matrix product, for the projections of multihead.torch.
#include <optional>

#include "multihead/ops/products/matmul.h"
#include "python/array.h"
#include "python/bindings.h"

namespace mh::python {

using namespace nb::literals;

namespace {

// (…, N); operands that have no such rank are refused by the op itself.
Shape product_shape(const Tensor& a, const Tensor& w) {
  Shape shape = a.shape();
  if (shape.rank() > 0 && w.rank() > 0) shape[shape.rank() - 1] = w.size(-1);
  return shape;
}

nb::object multiply(nb::handle a_object, nb::handle w_object, nb::handle bias_object) {
  constexpr std::string_view op = "matmul";
  const Array a({op, "a"}, a_object), w({op, "w"}, w_object);
  std::optional<Array> bias;
  if (!bias_object.is_none()) bias.emplace(Site{op, "bias"}, bias_object);
  Output y(a, product_shape(a.tensor(), w.tensor()), a.tensor().dtype());
  {
    nb::gil_scoped_release released;
    matmul_into(y.tensor(), a.tensor(), w.tensor(), {.bias = bias ? bias->tensor() : Tensor{}});
  }
  return y.release();
}

}  // namespace

void bind_matmul(nb::module_& m) {
  m.def("matmul", multiply, "a"_a, "w"_a, "bias"_a.none() = nb::none(),
        "a · w + bias: a (…, K), w (K, N), bias (N), float32 or bfloat16, any strides; without a gradient.");
}

}  // namespace mh::python
