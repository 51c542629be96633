// The matrix product of the layers: one weight matrix, any leading axes, a fused tail.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "multihead/ops/rows/activation.h"
#include "multihead/tensor/tensor.h"

namespace mh {

struct MatmulOptions {
  Tensor bias{};      // (N), f32 or bf16
  Tensor residual{};  // the shape and type of the result
  Tensor gate{};      // likewise: the result is 0 where it is not above 0
  float scale = 1;
  Activation activation = Activation::none;
  std::optional<DType> result{};  // f32 or bf16; the type of a where not given
};

// A weight matrix laid out once as the products of this machine want it. Copies share memory.
class PackedWeights {
 public:
  PackedWeights() = default;
  explicit operator bool() const { return static_cast<bool>(words_); }

  DType dtype() const { return dtype_; }
  int64_t rows() const { return k_; }
  int64_t columns() const { return n_; }

 private:
  friend PackedWeights prepack(const Tensor& w);
  friend Tensor matmul(const Tensor& a, const PackedWeights& w, const MatmulOptions& options);

  Tensor words_;
  std::string rung_;
  DType dtype_ = DType::f32;
  int64_t k_ = 0, n_ = 0;
};

// w (K, N): f32 or bf16, any strides; a matrix stored as (N, K) is given as w.transpose(0, 1).
// Throws: invalid_argument for another rank; unsupported for another type, and for a w that is traced on an open tape.
PackedWeights prepack(const Tensor& w);

// y = activation(scale · (a · w) + bias) + residual, or 0 where a gate shuts it; a (…, K), w (K, N), y (…, N); any
// strides.
//
// a and w are both f32 or both bf16. Sums are f32 and rounded once, at the end. An element's sum over k is taken in one
// order for every number of rows and threads and for packed and plain w: a row has the same bits alone or in a batch.
// K = 0 gives sums of 0; an axis of length 0 gives an empty result.
// Gradient: of a, w, bias and residual, by products in the type of a; a gate has none. Saves its inputs. A product with
// packed weights has no derivative.
// Throws: invalid_argument, with the shapes, where they do not fit, or where w was packed on another rung than the one
// in use; unsupported for other types.
Tensor matmul(const Tensor& a, const Tensor& w, const MatmulOptions& options = {});
Tensor matmul(const Tensor& a, const PackedWeights& w, const MatmulOptions& options = {});
// The same, into y of the caller: contiguous, in memory that no operand shares. options.result is not read: y has a
// type. Throws: unsupported where an operand is traced on an open tape, too.
void matmul_into(const Tensor& y, const Tensor& a, const Tensor& w, const MatmulOptions& options = {});

}  // namespace mh
