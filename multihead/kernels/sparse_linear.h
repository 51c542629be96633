// The contract of sparse_linear: the linear layer of rows that are mostly zeros, as relu makes them.
#pragma once

#include <cstdint>

#include "multihead/base/view.h"

namespace mh::kernels {

// Columns that lie side by side in the weights: a whole number of vectors on every rung.
constexpr int64_t kSparsePanel = 64;

// y = x · wᵀ + bias + residual. Products with an element of x that is 0 are left out, whatever w holds there. An
// element's sum over k is taken in ascending order: its bits depend on nothing but its row and w.
struct SparseLinearArgs {
  View x{};                  // (M, K) f32, unit last stride
  const float* w = nullptr;  // [panel][k][column], kSparsePanel columns to a panel, 0 past the last; 64-byte aligned
  int64_t n = 0;
  View bias{};      // (N) f32, unit stride, or null
  View residual{};  // (M, N) f32, unit last stride, or null
  View y{};         // (M, N) f32, unit last stride
};

}  // namespace mh::kernels
