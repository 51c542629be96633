// Everything that can be asked of attention besides q, k and v: docs/semantics.md says what every option means.
#pragma once

#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "multihead/ops/attention/mask.h"
#include "multihead/tensor/tensor.h"

namespace mh {

// s = scale · q·k; scale defaults to 1/√Dk.
struct DotSimilarity {
  std::optional<float> scale{};
};
// s = tau · q·k / (|q||k|); a vector shorter than 2^-60 counts as zero.
struct CosineSimilarity {
  float tau = 1;
  Tensor taus{};  // f32 (H), in place of tau
};
// s = -scale · |q - k|², by the expansion scale · (2 q·k - |q|² - |k|²).
struct EuclideanSimilarity {
  std::optional<float> scale{};
};
using Similarity = std::variant<DotSimilarity, CosineSimilarity, EuclideanSimilarity>;

// Added to the scores: a dense tensor broadcastable to (B, H, Tq, Tk).
struct DenseBias {
  Tensor values;
};
// -slopes[h] · |position - j|.
struct AlibiBias {
  Tensor slopes;  // f32 (H)
};
// table[bucket(j - position)][h], buckets as in T5.
struct T5Bias {
  Tensor table;  // f32 (buckets, H)
  bool bidirectional = true;
  int64_t max_distance = 128;
};
// Several are added up; at most one dense, one relative (ALiBi or T5).
using Bias = std::variant<DenseBias, AlibiBias, T5Bias>;

struct Dropout {
  float p = 0;
  uint64_t seed = 0;
};

// Learned mixing of the scores after the cap, before bias and mask.
struct HeadMix {
  Tensor matrix;  // f32 (H, H): s'[h] = Σ_g matrix[h][g] · s[g]
};
struct KeyMix {
  Tensor matrix;  // f32 (Tk, Tk): s'[j] = Σ_l s[l] · matrix[l][j]; refused with causal masks
};
using ScoreMix = std::variant<std::monostate, HeadMix, KeyMix>;

// Packed batches: q (ΣTq, H, Dk), k (ΣTk, Hkv, Dk), v (ΣTk, Hkv, Dv); boundaries i32 (B + 1), first 0.
struct Packed {
  Tensor cu_seqlens_q, cu_seqlens_k;
};

struct AttentionOptions {
  Mask mask{};
  std::vector<Bias> bias{};
  Similarity similarity = DotSimilarity{};
  float cap = 0;  // > 0: s = cap · tanh(s / cap)
  Tensor sink{};  // f32 (H), or empty
  Dropout dropout{};
  std::optional<Packed> packed{};
  ScoreMix score_mix{};
};

}  // namespace mh
