// The contract of recurrent cells: one step of many sequences, forward and backward, and the scores of additive
// attention.
#pragma once

#include <cstdint>

#include "multihead/base/view.h"

namespace mh::kernels {

// With a = x + p, x the products of the input and p = h · wᵀ + bias those of the state, in the gates' order of torch:
//   tanh, relu  h' = f(a)
//   lstm        i, f, o = sigmoid(a_i, a_f, a_o), g = tanh(a_g); c' = f c + i g; h' = o tanh(c')        order i f g o
//   gru         r, z = sigmoid(a_r, a_z), n = tanh(x_n + r p_n); h' = (1 - z) n + z h                   order r z n
enum class Cell : uint8_t { tanh, relu, lstm, gru };

// `rows` sequences, of which each has a row in x and y, number at[n]; everything else lies row behind row. G gates of
// `width` elements: 1, 4 (lstm) or 3 (gru).
struct RecurrentForwardArgs {
  Cell cell = Cell::tanh;
  int64_t rows = 0, width = 0;
  const int32_t* at = nullptr;
  const float* x = nullptr;     // (…, G · width)
  const float* bias = nullptr;  // (G · width), added to the state's products; or null
  float* gates = nullptr;       // (rows, G · width): h · wᵀ; becomes the gates after their functions
  float* h = nullptr;           // (rows, width), becomes h'
  float* c = nullptr;           // likewise, lstm
  float* y = nullptr;           // (…, width): h'
  void* operand = nullptr;      // (next, width): h' of the first `next` rows, of operand_type (f32 or bf16), or null
  int64_t next = 0;
  DType operand_type = DType::f32;
  float* kept = nullptr;  // (rows, width), or null: c (lstm) or p_n (gru), for the way back
};

struct RecurrentBackwardArgs {
  Cell cell = Cell::tanh;
  int64_t rows = 0, width = 0;
  const int32_t* at = nullptr;
  const float *gates = nullptr, *kept = nullptr;  // of the forward step
  const void* before = nullptr;                   // (rows, width) of `type`: h, read by gru
  const float* dy = nullptr;                      // (…, width), or null
  float* dh = nullptr;        // (rows, width): dh' of the steps after; gru makes it z (dh' + dy), others leave it
  float* dc = nullptr;        // likewise, lstm: dc' becomes dc
  float* dx = nullptr;        // (…, G · width)
  void* dproducts = nullptr;  // (rows, G · width) of `type`: the gradient of p
  DType type = DType::f32;
};

// s_j = Σ_a w_a tanh(q_ba + k_ja) for the keys j of sequence b, starts[b] … starts[b + 1] - 1.
struct AdditiveForwardArgs {
  int64_t sequences = 0, width = 0;
  const int32_t* starts = nullptr;
  const float *q = nullptr, *k = nullptr, *w = nullptr;  // (sequences, width), (keys, width), (width)
  float* s = nullptr;                                    // (keys)
};

// dk, dq, and dw of each sequence apart: (sequences, width). With d_ja = ds_j (1 - tanh²): dk_ja = w_a d_ja,
// dq_ba = Σ_j dk_ja, dw_ba = Σ_j ds_j tanh.
struct AdditiveBackwardArgs {
  int64_t sequences = 0, width = 0;
  const int32_t* starts = nullptr;
  const float *q = nullptr, *k = nullptr, *w = nullptr, *ds = nullptr;
  float *dq = nullptr, *dk = nullptr, *dw = nullptr;
};

}  // namespace mh::kernels
