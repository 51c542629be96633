// Losses of a few outputs, made of ops: for tasks that want more than one class to count.
#pragma once

#include "multihead/nn/sequences.h"
#include "multihead/ops/rows/cross_entropy.h"
#include "multihead/tensor/tensor.h"

namespace mh {

// Σ over rows and classes of -t · log p, with p = softmax(logits) by row: logits and t f32 (rows, V). The rows of t may
// have any sum: class weights, smoothing and a teacher's probabilities are all ways to choose t. A scalar, f32.
// Gradient: of logits, p · Σ t - t by row. Throws: invalid_argument where the shapes differ.
Tensor soft_cross_entropy(const Tensor& logits, const Tensor& t);

// Of each sequence one row is right: logits f32 (rows), targets i32 (sequences), each a row counted from its sequence's
// first one.
//   loss of a sequence = (1 - smoothing) · -log p[target] + smoothing · mean over its rows of -log p,
//   p = softmax(logits) over its rows alone; the mean over sequences
// Gradient: of logits. Throws: invalid_argument where shapes do not fit, a sequence is empty, or a target is outside.
CrossEntropy row_cross_entropy(const Tensor& logits, const Sequences& at, const Tensor& targets, float smoothing = 0);

// Of labels that do not exclude one another: logits f32 and t f32 of one shape, t 0 or 1, p = 1 / (1 + exp(-logit)).
//   the mean over all elements of -t' log p - (1 - t') log(1 - p),   t' = (1 - smoothing) t + smoothing / 2
// A scalar, f32. Gradient: of logits, (p - t') / elements. Throws: invalid_argument where the shapes differ, or t holds
// another number.
Tensor binary_cross_entropy(const Tensor& logits, const Tensor& t, float smoothing = 0);

// The mean over all elements of (x - t)²; x and t f32 of one shape. A scalar. Gradient: of x, 2 (x - t) / elements.
// Throws: invalid_argument where the shapes differ.
Tensor squared_error(const Tensor& x, const Tensor& t);

}  // namespace mh
