// Recurrent layers over ragged batches, RNN, LSTM and GRU; and the scores of additive attention.
#pragma once

#include <cstdint>

#include "multihead/ops/products/matmul.h"
#include "multihead/tensor/tensor.h"

namespace mh {

// Which cell; gates as torch.nn orders them: one; input, forget, cell, output; reset, update, new.
enum class Cell : uint8_t { tanh, relu, lstm, gru };
inline constexpr int64_t kGates[] = {1, 1, 4, 3};  // of each cell

// What a sequence leaves behind: f32 (B, H); c of LSTM alone.
struct RecurrentState {
  Tensor h{}, c{};
};

struct RecurrentWeights {
  Tensor w{};     // f32 (G · H, H): state to gates, weight_hh of torch.nn
  Tensor bias{};  // f32 (G · H) or empty, bias_hh
  Tensor copy{};  // w in bf16: the products of the state are then of bf16; else of f32
  // prepack of wᵀ, in place of w and copy where nothing is recorded.
  PackedWeights packed{};
};

struct RecurrentOptions {
  Cell cell = Cell::tanh;
  bool reverse = false;    // from the last row of each sequence to its first
  RecurrentState start{};  // 0 where empty
};

struct RecurrentResult {
  Tensor y{};            // f32 (R, H): h of every row
  RecurrentState end{};  // of every sequence, after its last step; its start where it has no rows
};

// Steps a cell along B sequences at once: x f32 (R, G · H) is what the input gives every gate (x · w_ihᵀ + b_ih, by
// `linear`), sequence b has rows starts[b] … starts[b + 1] - 1, starts i32 (B + 1).
//   tanh, relu  h' = f(x + p), p = h · wᵀ + bias
//   lstm        c' = σ(f) c + σ(i) tanh(g), h' = σ(o) tanh(c'), of the parts i, f, g, o of x + p
//   gru         n = tanh(x_n + σ(r) p_n), h' = (1 - σ(z)) n + σ(z) h
// Steps are taken of all sequences that still have a row, longest first: nothing is padded, and a sequence has the same
// bits alone, in any batch and with any number of threads. No rows and no sequences are allowed.
// Gradient: of x, w, bias and the start; saves the gates and states of every row.
// Throws: invalid_argument, with the shapes; unsupported for other types; one sentence before anything is written.
RecurrentResult recurrent(const Tensor& x, const Tensor& starts, const RecurrentWeights& weights,
                          const RecurrentOptions& options = {});

// Bahdanau's scores: s_j = Σ w · tanh(q_b + k_j) for the keys of sequence b, rows starts[b] … starts[b + 1] - 1 of k;
// q (B, A), k (R, A), w (A), s (R), all f32. Nothing of size R × A is kept. Gradient: of q, k and w; saves them.
// Throws: alike.
Tensor additive_scores(const Tensor& q, const Tensor& k, const Tensor& w, const Tensor& starts);

}  // namespace mh
