// Layer norm and RMS norm over the last axis.
#pragma once

#include <optional>

#include "multihead/tensor/tensor.h"

namespace mh {

struct NormOptions {
  float eps = 1e-5f;
  std::optional<DType> result{};  // the type of x where not given; f32 and bf16 mix
};

// y = (x - mean) / √(variance + eps) · gamma + beta over the last axis of x (…, C), the variance divided by C.
// gamma and beta are (C), f32; empty ones count as 1 and 0. Statistics are f32 whatever the type of x; a row has the
// same bits alone or in a batch. C = 0 gives an empty result.
// Gradient: of x, gamma and beta; saves x and two numbers a row. Sums over rows are taken in an order of sizes alone.
// Throws: invalid_argument, with the shapes, where they do not fit; unsupported for other types.
Tensor layer_norm(const Tensor& x, const Tensor& gamma, const Tensor& beta, const NormOptions& options = {});

// y = x / √(mean of x² + eps) · gamma, alike.
Tensor rms_norm(const Tensor& x, const Tensor& gamma, const NormOptions& options = {});

}  // namespace mh
