// The linear layer: one weight matrix as PyTorch stores it, a fused tail, and its gradients.
#pragma once

#include <optional>

#include "multihead/ops/products/matmul.h"
#include "multihead/ops/rows/dropout.h"
#include "multihead/tensor/tensor.h"

namespace mh {

struct LinearOptions {
  Tensor bias{};      // f32 (N)
  Tensor residual{};  // the shape and type of the result; not together with an activation or dropout
  Activation activation = Activation::none;
  DropoutOptions dropout{};
  std::optional<DType> result{};  // f32 or bf16; the type of x where not given
  // w in the type of x, where that is bf16 and w f32: what the products read. Made of w at every call where not given.
  Tensor copy{};
};

// y = dropout(activation(x · wᵀ + bias)) + residual, x (…, K) f32 or bf16, w (N, K), y (…, N).
// Without dropout a row has the same bits alone or in a batch.
// Gradient: dx in the type of x; dw, dbias in f32 (dw = dyᵀ · x, summed over rows in one order); saves x, w, and y
// (relu, which also tells what was dropped) or x · wᵀ + bias (gelu). Throws: invalid_argument, unsupported; one
// sentence with the shapes.
Tensor linear(const Tensor& x, const Tensor& w, const LinearOptions& options = {});

struct LinearWeights {
  Tensor w, bias{};  // as of linear
  Tensor copy{};
};

struct ReluPairOptions {
  DropoutOptions dropout{};       // of the middle
  Tensor residual{};              // the shape and type of the result
  std::optional<DType> result{};  // f32 or bf16; the type of x where not given
};

// y = dropout(relu(x · w1ᵀ + b1)) · w2ᵀ + b2 + residual, with the bits of two linears: the feed-forward of the paper.
// Gradient: as of linear; the derivative of relu costs no pass of its own, as nobody else reads the middle. Saves x,
// the middle and both weights. Throws: as linear.
Tensor linear_relu_linear(const Tensor& x, const LinearWeights& first, const LinearWeights& second,
                          const ReluPairOptions& options = {});

}  // namespace mh
