// The contract of layer norm and RMS norm. Rows are views (R, C) with a unit last stride.
//
//   layer  mean = Σx / C   rstd = 1 / √(Σ(x - mean)² / C + eps)   xhat = (x - mean) · rstd   y = xhat · gamma + beta
//   RMS    mean = 0        rstd = 1 / √(Σx² / C + eps)            the rest alike
//
// With g = dy · gamma:  dx = rstd · (g - Σg / C [layer only] - xhat · Σ(g · xhat) / C);  dgamma = Σ over rows of dy ·
// xhat; dbeta = Σ over rows of dy. Sums over rows are taken in blocks of a size that R and C alone decide, added in
// order.
#pragma once

#include <cstdint>

#include "multihead/base/view.h"

namespace mh::kernels {

struct NormaliseForwardArgs {
  View x{}, y{};                 // f32, bf16 in any mixture, or both f16
  const float* gamma = nullptr;  // (C), or null: 1
  const float* beta = nullptr;   // (C), or null: 0
  float* mean = nullptr;         // (R); null: RMS norm
  float* rstd = nullptr;         // (R)
  float eps = 0;
};

struct NormaliseBackwardArgs {
  View x{}, dy{}, dx{};  // dx has the type of x, dy that of y
  bool add = false;      // to what dx holds
  const float* gamma = nullptr;
  const float* mean = nullptr;  // null: RMS norm
  const float* rstd = nullptr;
  float* dgamma = nullptr;  // (C), or null: not wanted
  float* dbeta = nullptr;   // (C), or null: not wanted
};

}  // namespace mh::kernels
