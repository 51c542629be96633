// Softmax over the last axis, and what is taken from it.
#pragma once

#include <cstdint>

#include "multihead/tensor/tensor.h"

namespace mh {

// y = exp(x) / Σ exp(x) over the last axis of x, in the type of x: f32, bf16 or f16. Sums are f32. A row of -inf alone
// gives NaN; an axis of length 0 an empty result.
// Gradient: y · (dy - Σ dy · y); saves y.
// Throws: invalid_argument for a scalar; unsupported for other types.
Tensor softmax(const Tensor& x);

// y = x - log Σ exp(x), alike. Gradient: dy - exp(y) · Σ dy; saves y.
Tensor log_softmax(const Tensor& x);

// log Σ exp(x) over the last axis of x (…, C), f32 (…); -inf for a row of -inf alone and for an empty one.
// Gradient: softmax(x) · dy; saves x and the result.
Tensor log_sum_exp(const Tensor& x);

struct TopK {
  Tensor values;   // (…, k) f32: log_softmax(x) of the chosen, largest first
  Tensor indices;  // (…, k) i32
};
// The k largest of each row of x (…, C), equal ones by smaller index. A NaN is never chosen: where too few numbers are
// left, the index is -1 and the value NaN.
// Gradient: none; a backward pass through values throws.
// Throws: invalid_argument unless 1 <= k <= min(C, 64); unsupported for other types.
TopK top_k(const Tensor& x, int64_t k);

}  // namespace mh
