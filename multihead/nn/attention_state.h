// The keys and values that a stack of blocks keeps while it generates, with or without cross-attention.
#pragma once

#include <cstdint>
#include <vector>

#include "multihead/nn/multi_head_attention.h"
#include "multihead/ops/attention/kv_cache.h"

namespace mh {

// What an encoder hands to a decoder's cross-attention, in the type of the products.
struct EncoderOutput {
  Tensor rows{};
  Sequences at{};
};

// Each sequence (a sentence or a prompt) is continued by hypotheses: one at first, then as many as `choose` says.
// Layers are added in the order in which the stack runs them.
class AttentionState {
 public:
  struct Options {
    int64_t sequences = 0;
    int64_t room = 0;  // keys of all hypotheses together
    DType dtype = DType::f32;
    Device device{};
  };
  explicit AttentionState(const Options& options);

  // Keys that up to `width` hypotheses of up to `longest` tokens take for each of so many sequences.
  static int64_t room(int64_t sequences, int64_t width, int64_t longest);
  // The same where every sequence begins with a prompt of so many tokens, which its hypotheses share.
  static int64_t room(const std::vector<int64_t>& prompts, int64_t width, int64_t longest);

  void add_layer(const MultiHeadAttention& self);
  // With cross-attention, whose keys and values are computed here, once.
  void add_layer(const MultiHeadAttention& self, const MultiHeadAttention& cross, const EncoderOutput& context);

  // Keeps the keys and values of whole prompts, a sequence each. All layers must be given the same boundaries.
  void keep(size_t layer, const MultiHeadAttention::Heads& heads, const Sequences& at);
  // Self-attention of one new row per hypothesis, which is kept: o (hypotheses, H, D).
  Tensor self_attend(size_t layer, const MultiHeadAttention& module, const MultiHeadAttention::Heads& heads,
                     Pass& pass);
  // Cross-attention of q (hypotheses, H, D) over the context of each hypothesis' sequence.
  Tensor cross_attend(size_t layer, const MultiHeadAttention& module, const Tensor& q, Pass& pass) const;
  // After all layers have run: each hypothesis holds one row more, or those of its prompt.
  void advance();
  void advance(const Sequences& prompts);

  // Continues with these hypotheses, named by their numbers of the last step, in the order of their sequences;
  // `counts[b]` of them belong to sequence b (0: it is done). Throws: invalid_argument where the numbers do not fit.
  void choose(const std::vector<int32_t>& parents, const std::vector<int64_t>& counts);

  int64_t hypotheses() const { return static_cast<int64_t>(lengths_.size()); }
  // i32 (hypotheses): the position of each one's next row.
  Tensor positions() const;
  int64_t longest() const;

 private:
  Options options_;
  std::vector<KVCache> caches_;
  std::vector<MultiHeadAttention::KeysValues> context_;  // by layer, where there is cross-attention
  Sequences context_at_, owners_;                        // owners_: the hypotheses of each sequence
  std::vector<int32_t> lengths_;
};

}  // namespace mh
