// Multi-head attention as a layer: projections, heads, attention, the way back to the model's width.
#pragma once

#include <cstdint>
#include <optional>
#include <variant>

#include "multihead/nn/linear.h"
#include "multihead/nn/sequences.h"
#include "multihead/ops/attention/attention.h"

namespace mh {

// How a layer tells positions apart by itself.
struct Rotary {
  float base = 10000;
  bool interleaved = false;  // pairs of neighbours; else the two halves of a head
};
struct Alibi {};  // slopes 2^(-8 (h + 1) / H)
struct T5Buckets {
  int64_t buckets = 32, max_distance = 128;
  bool bidirectional = true;
};
using LayerPositions = std::variant<std::monostate, Rotary, Alibi, T5Buckets>;

// Widths of 0 take the default named beside them.
struct MultiHeadAttentionOptions {
  int64_t model = 0, heads = 1;
  int64_t key_heads = 0;                   // heads
  int64_t key_width = 0, value_width = 0;  // per head, the paper's d_k and d_v: model / heads, key_width
  int64_t key_input = 0, value_input = 0;  // widths of what keys and values are made of: model
  int64_t output = 0;                      // model
  bool bias = true;
  float dropout = 0;  // of the attention weights
  Similarity similarity = DotSimilarity{};
  LayerPositions positions{};
};

// What one call may add.
struct AttendOptions {
  Mask mask{};
  Tensor head_mask{};  // (H) or (B, H): o[h] · m[h] before the output projection, with its gradient
};

// Which rows of x are equal, so that each is projected once: x[n] = x[first[which[n]]]. Empty: nothing is known.
struct RepeatedRows {
  Tensor first{}, which{};  // i32
};

// Parameters as torch.nn.MultiheadAttention names them: in_proj_weight (q, k and v below each other) where all three
// are made of the same width, else q_proj_weight, k_proj_weight, v_proj_weight; in_proj_bias, out_proj.weight,
// out_proj.bias; and relative_bias (buckets, H) for T5.
class MultiHeadAttention {
 public:
  // Throws: invalid_argument where the sizes do not fit.
  MultiHeadAttention(const Params& at, const MultiHeadAttentionOptions& options);

  // Self-attention over the sequences of x (rows, model); (rows, output) in f32.
  Tensor operator()(const Tensor& x, const Sequences& at, Pass& pass, const AttendOptions& options = {},
                    const SublayerEnd& ending = {}) const;
  // Batch first: q (B, Tq, model), k (B, Tk, key_input), v (B, Tk, value_input) -> (B, Tq, output).
  Tensor operator()(const Tensor& q, const Tensor& k, const Tensor& v, Pass& pass,
                    const AttendOptions& options = {}) const;

  // The steps, for those who keep keys and values: heads of q, and of k and v, as rows (rows, H, D) …
  struct KeysValues {
    Tensor k, v;
  };
  Tensor queries(const Tensor& x, const Tensor& positions) const;
  KeysValues keys_values(const Tensor& k, const Tensor& v, const Tensor& positions) const;
  struct Heads {
    Tensor q, k, v;
  };
  Heads project(const Tensor& x, const Tensor& positions, const RepeatedRows& repeats = {}) const;
  // … attention over rows of two ragged batches …
  Tensor attend(const Heads& heads, const Sequences& queries, const Sequences& keys, Pass& pass,
                const AttendOptions& options) const;
  // … and the way out, from (rows, H, value_width).
  Tensor finish(const Tensor& o, Pass& pass, const SublayerEnd& ending) const;

  // Everything attention is told, for a call of one's own (weights, caches).
  AttentionOptions call_options(Pass& pass, const Mask& mask) const;
  const MultiHeadAttentionOptions& options() const { return options_; }
  // Lays the weights out for inference, those that this use of the layer reads.
  enum class Use { self, cross };
  void pack(DType compute, Use use);

 private:
  Tensor rotated(const Tensor& x, const Tensor& positions) const;
  MultiHeadAttentionOptions options_;
  const Param* relative_ = nullptr;
  Tensor slopes_;
  std::optional<Linear> all_, pair_;  // q, k and v at once, k and v at once: where made of one width
  std::optional<Linear> q_, k_, v_;
  Linear out_;
};

}  // namespace mh
