// The linear layer: one weight matrix as PyTorch stores it, a fused tail, and its gradients.
#pragma once

#include <optional>

#include "multihead/ops/dropout.h"
#include "multihead/ops/matmul.h"
#include "multihead/tensor/tensor.h"

namespace mh {

struct LinearOptions {
  Tensor bias{};      // f32 (N)
  Tensor residual{};  // the shape and type of the result; not together with an activation or dropout
  Activation activation = Activation::none;
  DropoutOptions dropout{};
  std::optional<DType> result{};  // f32 or bf16; the type of x where not given
  // Two linears with relu between them, the middle read by the second alone: the derivative of the first one's relu is
  // taken by the second, in the product that gives its dx. Said of both, or the gradients are wrong.
  bool relu_by_reader = false;  // of the first
  bool relu_before = false;     // of the second: x is the first one's y
  // w in the type of x, where that is bf16 and w f32: what the products read. Made of w at every call where not given.
  Tensor copy{};
};

// y = dropout(activation(x · wᵀ + bias)) + residual, x (…, K) f32 or bf16, w (N, K), y (…, N).
// Without dropout a row has the same bits alone or in a batch.
// Gradient: dx in the type of x; dw, dbias in f32 (dw = dyᵀ · x, summed over rows in one order); saves x, w, and y
// (relu, which also tells what was dropped) or x · wᵀ + bias (gelu). Throws: invalid_argument, unsupported; one
// sentence with the shapes.
Tensor linear(const Tensor& x, const Tensor& w, const LinearOptions& options = {});

}  // namespace mh
