// What tells one block of a Transformer from another, as plain data.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "multihead/nn/linear.h"
#include "multihead/nn/multi_head_attention.h"

namespace mh {

// before: x + f(norm(x)); after, the paper's: norm(x + f(x)); parallel: x + attention(norm1(x)) +
// feed_forward(norm2(x)).
enum class NormPlace { before, after, parallel };

// The feed-forward's middle: an activation, or the gated forms f(a) · b over a twice as wide first matrix: swiglu
// silu(a), geglu gelu(a), geglu_tanh gelu_tanh(a).
enum class Middle { relu, gelu, gelu_tanh, swiglu, geglu, silu, quick_gelu, tanh, geglu_tanh };

Activation activation_of(Middle middle);
bool is_gated(Middle middle);

struct BlockOptions {
  int64_t width = 0, heads = 1, feed_forward = 0;
  NormPlace norm = NormPlace::before;
  Middle middle = Middle::relu;
  float dropout = 0;  // of attention weights, the middle of the feed-forward, and each sublayer's end
  bool bias = true;
  Norm::Options normalisation{};
  LayerPositions positions{};  // of self-attention
  int64_t key_heads = 0, key_width = 0, value_width = 0;

  // Each projection has a matrix of its own, as most files have them: q_proj, k_proj, v_proj, and a gated
  // feed-forward's gate beside linear1.
  bool separate = false;
  std::optional<AttentionBiases> attention_biases{};  // where separate; all as `bias` where not given
  std::optional<float> scale{};                       // of the scores; 1/√key_width where not given
  std::optional<Norm::Options> head_norm{};           // of each head's q and k
  int64_t window = -1;                                // of self-attention: keys that far on each side; -1: all
  bool first_norm = true;                             // with norms before: whether attention's input has one
  std::optional<float> attention_dropout{};           // of the weights; `dropout` where not given
  std::optional<float> middle_dropout{};              // of the feed-forward's middle; `dropout` where not given
};

// N layers and, with pre-norm, a last normalisation (torch's nn.Transformer has it with either).
struct StackOptions {
  BlockOptions block{};
  int64_t layers = 1;
  bool last_norm = true;
  bool causal = false;     // a decoder-only stack is an encoder that sees no later keys
  bool recompute = false;  // keep only the input of each layer and run it again for its gradients: long inputs

  std::vector<BlockOptions> blocks{};  // of each layer, where they differ; else empty
  int64_t groups = 0;                  // layers share so many sets of weights (ALBERT), in runs; 0: each has its own
  bool shared_positions = false;       // T5Buckets: one table, relative_bias, for all layers
  bool normed_relative = false;        // Disentangled: the stack's table is normalised first

  const BlockOptions& block_of(int64_t layer) const {
    return blocks.empty() ? block : blocks[static_cast<size_t>(layer)];
  }
};

}  // namespace mh
