// The cross-entropy of logits with target classes: the loss of a language model.
#pragma once

#include <cstdint>

#include "multihead/tensor/tensor.h"

namespace mh {

enum class Reduction { mean, sum };

struct CrossEntropyOptions {
  float smoothing = 0;                    // 0 … 1: this share of the target is spread evenly over all V classes
  int32_t ignore = -1;                    // rows with this target do not count
  Reduction reduction = Reduction::mean;  // over the rows that count
};

struct CrossEntropy {
  Tensor loss;          // a scalar, f32
  Tensor nll;           // a scalar, f32, never traced: Σ -log p[target] over the rows that count
  int64_t counted = 0;  // how many do
};

// logits (…, V) f32, bf16 or f16; targets (…) i32, each in [0, V) or `ignore`, on the device of logits or on the CPU.
//   loss of a row = (1 - smoothing) · -log p[target] + smoothing · mean over classes of -log p,   p = softmax(logits)
// Where no row counts, loss and gradient are 0. Ignored rows do not count whatever their logits hold.
// Gradient: of logits, (p - (1 - smoothing) · onehot - smoothing / V) · dloss / n; saves logits and one number a row.
// Throws: invalid_argument for a target outside the classes or shapes that do not fit; unsupported for other types.
CrossEntropy cross_entropy(const Tensor& logits, const Tensor& targets, const CrossEntropyOptions& options = {});

// The same of logits = x · wᵀ, which are never held whole: x (…, C), w (V, C), such as a tied embedding. A chunk of
// rows at a time gives logits, loss and, where they are wanted, its part of dx and dw; rows that do not count cost
// nothing. x f32 or bf16; w in the type of x, or f32 beside a bf16 x, then rounded once. Logits, sums and dw are f32;
// with bf16 the derivatives of the logits are rounded to it. Gradient: of x and w; saves them, made on the way. Throws:
// as cross_entropy.
CrossEntropy linear_cross_entropy(const Tensor& x, const Tensor& w, const Tensor& targets,
                                  const CrossEntropyOptions& options = {});

}  // namespace mh
