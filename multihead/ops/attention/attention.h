// Attention, forward and backward: docs/semantics.md says what every option means.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "multihead/ops/attention/options.h"
#include "multihead/tensor/tensor.h"

namespace mh {

struct AttentionResult {
  Tensor o{};    // (B, H, Tq, Dv), packed (ΣTq, H, Dv), in q's type
  Tensor lse{};  // f32 (B, H, Tq), packed (H, ΣTq)
};

// q (B, H, Tq, Dk), k (B, Hkv, Tk, Dk), v (B, Hkv, Tk, Dv), f32, bf16 or f16 of one type, unit last stride, Hkv
// divides H. A row that keeps nothing gives o = 0, lse = -inf (or the sink's logit).
// Throws: invalid_argument, unsupported; one sentence with the shapes, before anything is written.
AttentionResult attention(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionOptions& options = {});
// The same, into o and lse of the caller (lse may be empty). o must not overlap an input. What writes into memory of
// the caller is never recorded: it throws unsupported where an input is traced on an open tape. So for every …_into.
void attention_into(const AttentionResult& out, const Tensor& q, const Tensor& k, const Tensor& v,
                    const AttentionOptions& options = {});

// What the gradient needs of the call it belongs to.
struct AttentionCall {
  Tensor q{}, k{}, v{};
  AttentionResult result{};
};

struct AttentionGradients {
  Tensor dq{}, dk{}, dv{};      // types and shapes of q, k, v
  std::vector<Tensor> dbias{};  // one per bias, f32, in the shape of values, slopes or table
  Tensor dsink{};               // f32 (H) where there is a sink
  Tensor dtau{};                // f32 (H) where the similarity is cosine
  Tensor dmix{};                // f32, the shape of the mixing matrix
};

// d_o like o; d_lse like lse, or empty for zero. Keys past a sequence's length get 0. Has no derivative itself.
AttentionGradients attention_backward(const AttentionCall& call, const Tensor& d_o, const Tensor& d_lse = {},
                                      const AttentionOptions& options = {});
// The same, into memory of the caller; what is empty in `out` is not computed. No output may overlap anything else.
struct OutputGradients {
  Tensor d_o{}, d_lse{};
};
void attention_backward_into(const AttentionGradients& out, const AttentionCall& call, const OutputGradients& gradients,
                             const AttentionOptions& options = {});

// Joins results over disjoint sets of keys: lse = log Σ exp(lse_n), o = Σ exp(lse_n - lse) · o_n. A sink belongs to
// one. Gradient: of every o and lse; saves them. Throws: invalid_argument where there is no part, or shapes or types
// differ.
AttentionResult merge(const std::vector<AttentionResult>& parts);
// Gradients of each part's o and lse.
std::vector<AttentionResult> merge_backward(const std::vector<AttentionResult>& parts, const AttentionResult& joined,
                                            const AttentionResult& gradient);

// Exact rows of p = exp(s - lse), before dropout: f32 (B, heads, rows, Tk). Empty lists mean all. Packed: B sequences,
// rows counted inside each, Tk of the longest; what lies past a sequence's end is 0. Without a gradient: a backward
// pass through the weights throws.
Tensor attention_weights(const Tensor& q, const Tensor& k, const Tensor& lse, const AttentionOptions& options = {},
                         const std::vector<int32_t>& heads = {}, const std::vector<int32_t>& rows = {});
struct WeightsChoice {
  std::vector<int32_t> heads{}, rows{};
};
// The same, into memory of the caller; reads q, k and the lse of the call.
void attention_weights_into(const Tensor& weights, const AttentionCall& call, const AttentionOptions& options,
                            const WeightsChoice& choice);

// Runs the call into call.result (lse may be empty) and, in the same pass, writes the mean over heads of its weights,
// before dropout: f32 (B, Tq, Tk); packed as above. The weights of all heads are never held together.
void attention_mean_into(const Tensor& mean, const AttentionCall& call, const AttentionOptions& options = {});

struct AttentionStatistics {
  Tensor entropy;      // f32 (B, H, Tq), nats
  Tensor top_keys;     // i32 (B, H, Tq, top); the first is the argmax; -1 where fewer are kept
  Tensor top_weights;  // f32 (B, H, Tq, top)
  Tensor received;     // f32 (B, H, Tk)
  Tensor distance;     // f32 (B, H, Tq): mean of |position - j|
};
// Streamed over the keys: never holds Tq × Tk. top in 0 … 64. Without a gradient, as the weights.
AttentionStatistics attention_statistics(const Tensor& q, const Tensor& k, const Tensor& lse,
                                         const AttentionOptions& options = {}, int top = 1);

struct Explanation {
  std::string kernel;  // attention_forward, attention_decode, composed
  std::string rung;
  std::string why;  // why not a faster one, or empty
  bool composed = false;
  int64_t flops = 0;    // of the pairs that lengths, causal, window and prefix keep; other masks may drop more
  int64_t bytes = 0;    // read and written at least once
  int64_t scratch = 0;  // bytes of extra memory, an upper estimate
  std::string text() const;
};
Explanation explain(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionOptions& options = {});

}  // namespace mh
