// The contract of the activations. Rows are views (R, C) with a unit last stride.
#pragma once

#include <cstdint>

#include "multihead/base/view.h"

namespace mh::kernels {

// relu max(x, 0); gelu x · Φ(x), Φ the normal distribution; gelu_tanh x/2 · (1 + tanh(√(2/π) (x + 0.044715 x³)));
// silu x · sigmoid(x); sigmoid 1 / (1 + exp(-x)). NaN stays NaN.
enum class Activation : uint8_t { none, relu, gelu, gelu_tanh, silu, sigmoid, tanh };

// y = f(x), all rows of one float type.
struct ActivationForwardArgs {
  View x{}, y{};
  Activation kind = Activation::none;
};

// dx = dy · f'(x); f' of relu at 0 is 0. dx may be dy.
struct ActivationBackwardArgs {
  View x{}, dy{}, dx{};
  Activation kind = Activation::none;
};

// x (R, 2F) holds a and b side by side: y = f(a) · b, y (R, F).
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
