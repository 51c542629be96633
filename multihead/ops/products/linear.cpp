// The linear layer, forward and backward, on the matrix product.
#include "multihead/ops/products/linear.h"

#include "multihead/autograd/tape.h"
#include "multihead/ops/elementwise.h"
#include "multihead/ops/elementwise_run.h"
#include "multihead/ops/rows/activation_run.h"
#include "multihead/ops/rows/dropout_run.h"
#include "multihead/ops/rows/rows.h"

namespace mh {

namespace {

void check_call(const Tensor& x, const Tensor& w, const LinearOptions& options) {
  check(x.rank() >= 1 && w.rank() == 2 && x.size(-1) == w.size(1),
        "linear: the rows of x do not fit w; expected x (…, K) and w (N, K); x is {}, w is {}", x.shape(), w.shape());
  check(!(options.residual && options.activation != Activation::none),
        "linear: both a residual and an activation; expected one of them; x is {}, w is {}", x.shape(), w.shape());
  check(!(options.residual && options.dropout.p > 0),
        "linear: both a residual and dropout; expected one of them, or dropout_add; x is {}, w is {}", x.shape(),
        w.shape());
  check(!options.copy || (options.copy.shape() == w.shape() && options.copy.dtype() == x.dtype()),
        "linear: the copy of w is {} {}; expected {} {}", name(options.copy.dtype()), options.copy.shape(),
        name(x.dtype()), w.shape());
}

// What the products read of w.
Tensor readable(const Tensor& x, const Tensor& w, const Tensor& copy) {
  return copy ? copy.detach() : cast(w.detach(), x.dtype());
}

Tensor column_sums(const Tensor& rows) {
  return detail::run_reduce(rows, {true, false}, false).reshape({rows.size(1)});
}

// One product x · wᵀ + bias, as it was read.
struct Product {
  Tensor x, w;
  bool has_bias, wants_x;
};

struct ProductGradients {
  Tensor dx, dw, dbias;
};

// From scale · dz; dx is 0 where the gate, where there is one, is not above 0.
ProductGradients backward(const Product& product, const Tensor& dz, float scale, const Tensor& gate) {
  const Tensor& x = product.x;
  const Tensor d = cast(dz.reshape({-1, dz.size(-1)}), x.dtype()), rows = x.reshape({-1, x.size(-1)});
  ProductGradients out;
  if (product.wants_x) out.dx = matmul(d, product.w, {.gate = gate, .scale = scale}).reshape(x.shape());
  out.dw = matmul(d.transpose(0, 1), rows, {.scale = scale, .result = DType::f32});
  if (product.has_bias) out.dbias = column_sums(d);
  if (product.has_bias && scale != 1) out.dbias = detail::run_unary(kernels::Unary::copy, out.dbias, DType::f32, scale);
  return out;
}

struct SavedLinear {
  Product product;
  Tensor decides;  // what the activation's derivative is taken of, or empty
  Activation activation;
  float kept;  // what dropout multiplied the elements that it kept by
  bool has_residual;
};

Grads backward(const SavedLinear& saved, const Tensor& dy) {
  // relu may be decided by its result, and with it dropout.
  const Tensor dz =
      saved.decides ? detail::activation_gradient("linear", saved.activation, saved.decides, dy, saved.kept) : dy;
  const ProductGradients d = backward(saved.product, dz, 1, {});
  return {d.dx, d.dw, d.dbias, saved.has_residual ? dy : Tensor()};
}

struct SavedPair {
  Product first, second;  // the x of the second is the middle
  float kept;
  bool has_residual;
};

// The derivative of relu, and which elements dropout kept, are taken in the product that gives the middle's gradient:
// both left a 0 in the middle.
Grads backward(const SavedPair& saved, const Tensor& dy) {
  const Tensor& middle = saved.second.x;
  const ProductGradients second = backward(saved.second, dy, 1, middle.reshape({-1, middle.size(-1)}));
  const ProductGradients first = backward(saved.first, second.dx, saved.kept, {});
  return {first.dx, first.dw, first.dbias, second.dw, second.dbias, saved.has_residual ? dy : Tensor()};
}

}  // namespace

Tensor linear(const Tensor& x, const Tensor& w, const LinearOptions& options) {
  check_call(x, w, options);
  if (options.dropout.p > 0 && options.activation != Activation::relu) {
    LinearOptions whole = options;
    whole.dropout = {};
    return dropout(linear(x, w, whole), options.dropout);
  }
  const bool records = recording({x, w, options.bias, options.residual});
  const bool smooth = options.activation != Activation::none && options.activation != Activation::relu;
  const Tensor weights = readable(x, w, options.copy);

  // The derivative of a smooth activation needs what went into it.
  const bool apart = records && smooth;
  const Tensor z = matmul(x.detach(), weights.transpose(0, 1),
                          {.bias = options.bias.detach(),
                           .residual = options.residual.detach(),
                           .activation = apart ? Activation::none : options.activation,
                           .result = options.result});
  const Tensor y = apart ? activation(z, options.activation) : z;
  const float kept = detail::drop_in_place("linear", y, options.dropout);
  if (!records) return y;

  SavedLinear saved{.product = {x.detach(), weights, static_cast<bool>(options.bias), x.trace() != 0},
                    .decides = options.activation == Activation::none ? Tensor() : z,
                    .activation = options.activation,
                    .kept = kept,
                    .has_residual = static_cast<bool>(options.residual)};
  return record("linear", y, {x, w, options.bias, options.residual},
                [saved = std::move(saved)](const Tensor& dy) { return backward(saved, dy); });
}

Tensor linear_relu_linear(const Tensor& x, const LinearWeights& first, const LinearWeights& second,
                          const ReluPairOptions& options) {
  const Tensor w1 = readable(x, first.w, first.copy), w2 = readable(x, second.w, second.copy);
  const LinearOptions opening{
      .bias = first.bias, .activation = Activation::relu, .dropout = options.dropout, .copy = w1};
  const LinearOptions closing{.bias = second.bias, .residual = options.residual, .result = options.result, .copy = w2};
  const std::vector<Tensor> inputs{x, first.w, first.bias, second.w, second.bias, options.residual};
  const bool records = recording(inputs);
  Tensor middle, y;
  {
    const NoTape closed;
    middle = linear(x, first.w, opening);
    y = linear(middle, second.w, closing);
  }
  if (!records) return y;

  SavedPair saved{.first = {x.detach(), w1, static_cast<bool>(first.bias), x.trace() != 0},
                  .second = {middle, w2, static_cast<bool>(second.bias), true},
                  .kept = detail::kept_scale("linear_relu_linear", options.dropout),
                  .has_residual = static_cast<bool>(options.residual)};
  return record("linear_relu_linear", y, inputs,
                [saved = std::move(saved)](const Tensor& dy) { return backward(saved, dy); });
}

}  // namespace mh
