// What an optimiser does to its tensors, in place: one pass over memory each. None of it is recorded: what
// is traced on an open tape is refused (unsupported).
#pragma once

#include "multihead/tensor/tensor.h"

namespace mh {

struct AdamwState {
  Tensor w, m, v;  // one shape, f32, contiguous; changed in place
  Tensor copy{};   // bf16, of the new w; or empty
};

struct AdamwOptions {
  float rate = 1e-3f, beta1 = 0.9f, beta2 = 0.999f, eps = 1e-8f;
  float decay = 0.01f;  // of w itself, times the rate (decoupled)
  int64_t step = 1;     // counted from 1: corrects the start of m and v
  float gradient_scale = 1;
};

// With g' = gradient_scale · g:  m = beta1 · m + (1 - beta1) · g'   v = beta2 · v + (1 - beta2) · g'²
//   w = w · (1 - rate · decay) - rate · (m / (1 - beta1^step)) / (√(v / (1 - beta2^step)) + eps)
// g has the shape of w; f32, bf16 or f16.
// Throws: invalid_argument, with the shapes, where they differ or are not contiguous, for step < 1, betas outside [0,
// 1) and rates that are negative or not finite; unsupported for other types.
void adamw(const AdamwState& state, const Tensor& g, const AdamwOptions& options);

// Σ x² in f64, in an order of sizes alone. Throws: unsupported for other types than f32, bf16, f16.
double sum_of_squares(const Tensor& x);

// y += part · (x - y): a running mean. Both f32, contiguous, of one shape.
// Throws: invalid_argument, with the shapes; unsupported for other types.
void lerp(const Tensor& y, const Tensor& x, float part);

// y += x, in the type of y; f32 and bf16 in any mixture, or f16 twice. y is contiguous.
// Throws: invalid_argument, with the shapes; unsupported for other types.
void accumulate(const Tensor& y, const Tensor& x);

}  // namespace mh
