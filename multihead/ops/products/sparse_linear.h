// The linear layer of rows that are mostly zeros, for inference.
#pragma once

#include <cstdint>

#include "multihead/tensor/tensor.h"

namespace mh {

// A weight matrix laid out for sparse_linear. Copies share memory.
class SparseWeights {
 public:
  SparseWeights() = default;
  explicit operator bool() const { return static_cast<bool>(panels_); }

 private:
  friend SparseWeights prepack_sparse(const Tensor& w);
  friend Tensor sparse_linear(const Tensor& x, const SparseWeights& w, const Tensor& bias, const Tensor& residual);

  Tensor panels_;
  int64_t n_ = 0, k_ = 0;
};

// w (N, K) f32. Throws: invalid_argument for another rank; unsupported for another type, and for a w that is traced on
// an open tape.
SparseWeights prepack_sparse(const Tensor& w);

// y = x · wᵀ + bias + residual, f32: x (M, K), bias (N) or empty, residual (M, N) or empty, y (M, N).
//
// Products with an element of x that is 0 are left out, whatever w holds there; the others are added in f32 in
// ascending order of k. A row has the same bits alone or in a batch. Gradient: none. Throws: invalid_argument where the
// shapes do not fit; unsupported for other types.
Tensor sparse_linear(const Tensor& x, const SparseWeights& w, const Tensor& bias = {}, const Tensor& residual = {});

}  // namespace mh
