// The contract of the matrix product.
#pragma once

#include <cstdint>

#include "multihead/base/view.h"
#include "multihead/kernels/activation.h"

namespace mh::kernels {

// y = activation(scale · (a · w) + bias) + residual, and 0 where there is a gate that is not above 0.
// a (M, K), w (K, N): f32 or bf16, both of one type, any strides (a transposed operand is a view with swapped strides).
// Sums are f32. An element's sum over k is taken in one order for every M, number of threads and kind of w: a row has
// the same bits alone or in a batch. K = 0 gives sums of 0.
struct GemmArgs {
  View a{};
  View w{};                      // not used where `packed` is given
  const void* packed = nullptr;  // what gemm_pack made of w
  int64_t n = 0, k = 0;          // sizes of w
  View y{};                      // (M, N) f32 or bf16, unit last stride
  View bias{};                   // (N) f32, unit stride, or null
  View residual{};               // (M, N) of y's type, unit last stride, or null; may be y itself
  View gate{};                   // likewise
  float scale = 1;
  Activation activation = Activation::none;
};

// Lays w (K, N) out as this rung's gemm wants it. With `packed` null only *bytes is written: the room needed.
struct GemmPackArgs {
  View w{};
  void* packed = nullptr;  // 64-byte aligned
  int64_t* bytes = nullptr;
};

}  // namespace mh::kernels
