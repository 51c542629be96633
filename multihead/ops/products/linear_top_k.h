// The most probable columns of a linear layer, found without its products ever lying in memory.
#pragma once

#include <cstdint>
#include <string>

#include "multihead/ops/rows/softmax.h"
#include "multihead/tensor/tensor.h"

namespace mh {

// A weight matrix and its copy for linear_top_k. Copies share memory.
class TopKWeights {
 public:
  TopKWeights() = default;
  explicit operator bool() const { return static_cast<bool>(w_); }

 private:
  friend TopKWeights prepack_top_k(const Tensor& w);
  friend TopK linear_top_k(const Tensor& x, const TopKWeights& w, int64_t k);

  Tensor w_, words_;
  std::string rung_;
};

// w (V, C) f32. Throws: invalid_argument for another rank; unsupported for another type, and for a w that is traced on
// an open tape.
TopKWeights prepack_top_k(const Tensor& w);

// top_k(x · wᵀ, k), x (R, C) f32.
//
// The products that are chosen, their order and their ties are those of f32. The others enter Σ exp from products of
// 16-bit integers. A log-probability is off by no more than rounding to them can move a product, and by far less where
// roundings average out: in a simulation with the rows and weights of models/en-de by 4e-6 (root of mean squares, at
// most 3e-5), where f32 throughout was off by up to 9e-6. A row has the same bits alone or in a batch. Gradient: none.
// Throws: invalid_argument where the shapes do not fit, unless 1 <= k <= min(V, 64), or where w was packed on another
// rung; unsupported for other types.
TopK linear_top_k(const Tensor& x, const TopKWeights& w, int64_t k);

}  // namespace mh
