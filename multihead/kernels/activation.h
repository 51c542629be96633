// The contract of the activations.
#pragma once

#include <cstdint>

#include "multihead/base/view.h"

namespace mh::kernels {

// relu max(x, 0); gelu x · Φ(x), Φ the normal distribution; gelu_tanh x/2 · (1 + tanh(√(2/π) (x + 0.044715 x³)));
// silu x · sigmoid(x); sigmoid 1 / (1 + exp(-x)); quick_gelu x · sigmoid(1.702 x). NaN stays NaN.
enum class Activation : uint8_t { none, relu, gelu, gelu_tanh, silu, sigmoid, tanh, quick_gelu };

// y = f(x) over contiguous elements of one float type.
struct ActivationForwardArgs {
  const void* x = nullptr;
  void* y = nullptr;
  DType type = DType::f32;
  int64_t count = 0;
  Activation kind = Activation::none;
};

// dx = scale · dy · f'(x); f' of relu at 0 is 0. dx may be dy.
struct ActivationBackwardArgs {
  const void *x = nullptr, *dy = nullptr;
  void* dx = nullptr;
  DType type = DType::f32;
  int64_t count = 0;
  Activation kind = Activation::none;
  float scale = 1;
};

// x (R, 2F) holds a and b side by side: y = f(a) · b, y (R, F). Rows of one float type with a unit last stride.
struct GatedForwardArgs {
  View x{}, y{};
  Activation kind = Activation::none;
};

// dx (R, 2F): da = dy · b · f'(a), db = dy · f(a).
struct GatedBackwardArgs {
  View x{}, dy{}, dx{};
  Activation kind = Activation::none;
};

}  // namespace mh::kernels
