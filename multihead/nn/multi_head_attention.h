// Multi-head attention as a layer: projections, heads, attention, the way back to the model's width.
#pragma once

#include <cstdint>
#include <optional>
#include <variant>

#include "multihead/nn/linear.h"
#include "multihead/nn/linear_group.h"
#include "multihead/nn/sequences.h"
#include "multihead/ops/attention/attention.h"

namespace mh {

// How a layer tells positions apart by itself.
struct Rotary {
  float base = 10000;
  bool interleaved = false;  // pairs of neighbours; else the two halves of a head
  int64_t width = 0;         // elements of a head that are turned; 0: all
};
struct Alibi {};  // slopes 2^(-8 (h + 1) / H)
struct T5Buckets {
  int64_t buckets = 32, max_distance = 128;
  bool bidirectional = true;
};
// DeBERTa's: scores of contents with distances, by a table of 2 · span rows that the stack owns (nn/disentangled.h).
struct Disentangled {
  int64_t buckets = 256;  // distances from half of them on share logarithmic buckets; 0: each has a row
  int64_t max_distance = 512;
  bool content_to_position = true, position_to_content = true;
  bool shared_projections = true;  // the layer's own q and k matrices project the table

  int64_t span() const { return buckets > 0 ? buckets : max_distance; }
};
using LayerPositions = std::variant<std::monostate, Rotary, Alibi, T5Buckets, Disentangled>;

struct AttentionBiases {
  bool query = true, key = true, value = true, out = true;
};

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

  bool separate = false;                     // q_proj, k_proj and v_proj, each with a weight and a bias of its own
  std::optional<AttentionBiases> biases{};   // where separate, and of out_proj; all as `bias` where not given
  std::optional<Norm::Options> head_norm{};  // of each head's q and k, before rotation: q_norm, k_norm
  int64_t window = -1;                       // keys that far on each side; -1: all
  bool shared_table = false;                 // T5Buckets: the table is given by read_table
};

// What one call may add.
struct AttendOptions {
  Mask mask{};
  Tensor head_mask{};         // (H) or (B, H): o[h] · m[h] before the output projection, with its gradient
  Tensor relative{};          // Disentangled: the stack's table (2 · span, model)
  Tensor* weights = nullptr;  // gets the weights, f32 (B, H, Tq, Tk), 0 past a sequence's end
};

// Which rows of x are equal, so that each is projected once: x[n] = x[first[which[n]]]. Empty: nothing is known.
struct RepeatedRows {
  Tensor first{}, which{};  // i32
};

// Parameters as torch.nn.MultiheadAttention names them: in_proj_weight (q, k and v below each other) where all three
// are made of the same width, else q_proj_weight, k_proj_weight, v_proj_weight; in_proj_bias, out_proj.weight,
// out_proj.bias; and relative_bias (buckets, H) for T5. Where the projections are separate: q_proj.weight and so on.
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
  // A T5 table (buckets, H) that layers share.
  void read_table(const Param& table) { relative_ = &table; }
  // Lays the weights out for inference, those that this use of the layer reads.
  enum class Use { self, cross };
  void pack(DType compute, Use use);

 private:
  void make_joined(const Params& at);
  void make_separate(const Params& at);
  Tensor with_heads(const Tensor& rows, const std::optional<Norm>& norm, const Tensor& positions) const;
  Tensor disentangled(const Heads& heads, const Sequences& at, const AttendOptions& options, const Pass& pass) const;
  MultiHeadAttentionOptions options_;
  const Param* relative_ = nullptr;
  Tensor slopes_;
  std::optional<Linear> all_, pair_;  // q, k and v at once, k and v at once: where made of one width
  std::optional<Linear> q_, k_, v_;
  std::optional<LinearGroup> self_, cross_;  // where separate: q, k and v at once, k and v at once
  std::optional<Linear> position_k_, position_q_;
  std::optional<Norm> q_norm_, k_norm_;
  Linear out_;
};

}  // namespace mh
