// The contract of what an optimiser does to flat arrays.
#pragma once

#include <cstdint>

#include "multihead/base/dtype.h"

namespace mh::kernels {

// One step of AdamW on `count` elements, with g' = gradient_scale · g:
//   m = beta1 · m + (1 - beta1) · g'      v = beta2 · v + (1 - beta2) · g'²
//   w = w · (1 - rate · decay) - rate / correction1 · m / (√(v / correction2) + eps)
struct AdamwArgs {
  float *w = nullptr, *m = nullptr, *v = nullptr;
  const void* g = nullptr;
  DType g_type = DType::f32;
  bf16* copy = nullptr;  // of the new w, rounded; or null
  int64_t count = 0;
  float rate = 0, beta1 = 0, beta2 = 0, eps = 0, decay = 0;
  float correction1 = 1, correction2 = 1;  // 1 - beta^step
  float gradient_scale = 1;
};

// *sum = Σ x² in f64: blocks of a fixed size, added in ascending order.
struct SumOfSquaresArgs {
  const void* x = nullptr;
  DType x_type = DType::f32;
  int64_t count = 0;
  double* sum = nullptr;
};

// y += part · (x - y), f32.
struct LerpArgs {
  float* y = nullptr;
  const float* x = nullptr;
  int64_t count = 0;
  float part = 0;
};

}  // namespace mh::kernels
