// The linear layer, forward and backward, on the matrix product.
#include "multihead/ops/linear.h"

#include "multihead/autograd/tape.h"
#include "multihead/kernels/cpu/dispatch.h"
#include "multihead/ops/dropout_run.h"
#include "multihead/ops/elementwise.h"
#include "multihead/ops/elementwise_run.h"
#include "multihead/ops/rows.h"

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
  check(!options.relu_by_reader || options.activation == Activation::relu,
        "linear: relu_by_reader without relu; expected relu as the activation; x is {}, w is {}", x.shape(), w.shape());
  check(!options.copy || (options.copy.shape() == w.shape() && options.copy.dtype() == x.dtype()),
        "linear: the copy of w is {} {}; expected {} {}", name(options.copy.dtype()), options.copy.shape(),
        name(x.dtype()), w.shape());
}

// What the products read of w.
Tensor readable(const Tensor& x, const Tensor& w, const LinearOptions& options) {
  return options.copy ? options.copy : cast(w.detach(), x.dtype());
}

struct Saved {
  Tensor x, w;     // as the products read them
  Tensor decides;  // what the activation's derivative is taken of, or empty: there is none, or its reader takes it
  Activation activation;
  float kept;        // what dropout multiplied the elements that it kept by
  bool relu_before;  // dx goes through the relu that gave x
  bool has_bias, has_residual;
  bool wants_x;
};

Tensor column_sums(const Tensor& rows) {
  return detail::run_reduce(rows, {true, false}, false).reshape({rows.size(1)});
}

// kept · dy · f'(decides), in the type of dy. relu may be decided by its result, and with it dropout.
Tensor through_activation(const Saved& saved, const Tensor& dy) {
  const Tensor dz = empty(dy.shape(), dy.dtype());
  const Tensor from = detail::dense(saved.decides), d = detail::dense(dy);
  kernels::cpu().activation_backward({.x = from.view().data,
                                      .dy = d.view().data,
                                      .dx = dz.view().data,
                                      .type = dy.dtype(),
                                      .count = dz.count(),
                                      .kind = detail::kernel_activation("linear", saved.activation),
                                      .scale = saved.kept});
  return dz;
}

Grads backward(const Saved& saved, const Tensor& dy) {
  const Tensor& x = saved.x;
  const Tensor through = saved.decides ? through_activation(saved, dy) : dy;
  const Tensor dz = cast(through.reshape({-1, dy.size(-1)}), x.dtype()), rows = x.reshape({-1, x.size(-1)});
  const float scale = saved.decides ? 1 : saved.kept;  // what through_activation has not multiplied by

  Grads grads(4);
  if (saved.wants_x)
    grads[0] = matmul(dz, saved.w, {.gate = saved.relu_before ? rows : Tensor(), .scale = scale}).reshape(x.shape());
  grads[1] = matmul(dz.transpose(0, 1), rows, {.scale = scale, .result = DType::f32});
  if (saved.has_bias) grads[2] = column_sums(dz);
  if (saved.has_bias && scale != 1) grads[2] = detail::run_unary(kernels::Unary::copy, grads[2], DType::f32, scale);
  if (saved.has_residual) grads[3] = dy;
  return grads;
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
  const Tensor weights = readable(x, w, options);

  // The derivative of a smooth activation needs what went into it.
  const bool apart = records && smooth;
  const Tensor z = matmul(x, weights.transpose(0, 1),
                          {.bias = options.bias.detach(),
                           .residual = options.residual.detach(),
                           .activation = apart ? Activation::none : options.activation,
                           .result = options.result});
  const Tensor y = apart ? activation(z, options.activation) : z;
  const float kept = detail::drop_in_place("linear", y, options.dropout);
  if (!records) return y;

  Saved saved{.x = x.detach(),
              .w = weights,
              .decides = options.activation == Activation::none || options.relu_by_reader ? Tensor() : z,
              .activation = options.activation,
              .kept = kept,
              .relu_before = options.relu_before,
              .has_bias = static_cast<bool>(options.bias),
              .has_residual = static_cast<bool>(options.residual),
              .wants_x = x.trace() != 0};
  return record("linear", y, {x, w, options.bias, options.residual},
                [saved = std::move(saved)](const Tensor& dy) { return backward(saved, dy); });
}

}  // namespace mh
