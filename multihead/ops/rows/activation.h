// Activations, plain and gated.
#pragma once

#include "multihead/tensor/tensor.h"

namespace mh {

// relu: max(x, 0). gelu: x · Φ(x), Φ the normal distribution. gelu_tanh: x/2 · (1 + tanh(√(2/π) (x + 0.044715 x³))).
// silu: x / (1 + exp(-x)). sigmoid: 1 / (1 + exp(-x)). quick_gelu: x / (1 + exp(-1.702 x)). NaN stays NaN.
enum class Activation { none, relu, gelu, gelu_tanh, silu, sigmoid, tanh, quick_gelu };

// y = f(x), element by element; f32, bf16 or f16. none gives x itself.
// Gradient: dy · f'(x), at the kink of relu 0; saves x.
// Throws: unsupported for other types.
Tensor activation(const Tensor& x, Activation kind);

// y = f(a) · b, where x (…, 2F) holds a in its first F columns and b in the others; y (…, F).
// Gradient: of both halves at once; saves x.
// Throws: invalid_argument, with the shape, for a scalar or an odd last axis; unsupported for other types.
Tensor gated(const Tensor& x, Activation kind);
inline Tensor swiglu(const Tensor& x) { return gated(x, Activation::silu); }
inline Tensor geglu(const Tensor& x) { return gated(x, Activation::gelu); }

}  // namespace mh
