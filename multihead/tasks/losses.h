// Losses of a few outputs, made of ops: for tasks that want more than one class to count.
#pragma once

#include "multihead/tensor/tensor.h"

namespace mh {

// Σ over rows and classes of -t · log p, with p = softmax(logits) by row: logits and t f32 (rows, V). The rows of t may
// have any sum: class weights, smoothing and a teacher's probabilities are all ways to choose t. A scalar, f32.
// Gradient: of logits, p · Σ t - t by row. Throws: invalid_argument where the shapes differ.
Tensor soft_cross_entropy(const Tensor& logits, const Tensor& t);

}  // namespace mh
