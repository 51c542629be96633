// The table of attention cases: what selftest ships and the tests run.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "multihead/ops/attention/attention.h"

namespace mh {

enum class CaseLayout : uint8_t {
  bhtd,
  bthd,
  shared,  // q, k, v (or k, v) are slices of one array
  padded,  // rows and heads further apart than they are long, NaN in between
};
enum class CaseBias : uint8_t {
  none,
  dense,
  per_head,
  per_key,
  per_query,
  drops,
  half,
  alibi,
  t5,
  t5_one_way,
  dense_alibi,
  dense_t5
};
enum class CaseSimilarity : uint8_t { dot, dot_scaled, cosine, cosine_per_head, euclidean };
enum class CaseMix : uint8_t { none, heads, keys };

// Bits of AttentionCase::masks.
enum CaseMask : uint16_t {
  kMaskKeep = 1 << 0,
  kMaskDrop = 1 << 1,
  kMaskLengths = 1 << 2,
  kMaskCausal = 1 << 3,
  kMaskOffset = 1 << 4,   // one for all
  kMaskOffsets = 1 << 5,  // one per sequence
  kMaskWindow = 1 << 6,
  kMaskPrefix = 1 << 7,
  kMaskDocuments = 1 << 8,
  kMaskQueryDocuments = 1 << 9,
};

// One call of attention as a small value; everything else follows from the seed.
struct AttentionCase {
  DType dtype = DType::f32;
  int64_t B = 1, H = 1, Hkv = 1, Tq = 1, Tk = 1, Dk = 1, Dv = 1;  // packed: Tq, Tk of the longest sequence
  CaseLayout layout = CaseLayout::bhtd;
  uint16_t masks = 0;
  CaseBias bias = CaseBias::none;
  CaseSimilarity similarity = CaseSimilarity::dot;
  CaseMix mix = CaseMix::none;
  float cap = 0;
  float dropout = 0;
  float growth = 0;  // the largest logit, reached along the keys
  bool sink = false;
  bool packed = false;
  bool d_lse = false;
  bool zero_vectors = false;  // some rows of q and k are 0
  uint64_t seed = 0;

  // "f32 B2 H4/2 Tq17 Tk33 Dk64 Dv32 bthd causal lengths alibi …"
  std::string label() const;
};

// What attention_cases(n) begins with holds for any n: a small set is the beginning of a large one.
// The first ones are edges: no keys, no queries, one key, all rows empty, widths 1 and 512.
std::vector<AttentionCase> attention_cases(int64_t count);

// How many of them a self-test takes, and the tests; a full run takes as many as make 100,000 with the rungs there are.
inline constexpr int64_t kSelftestCases = 400;
inline constexpr int64_t kFastCases = 2400;

struct CaseInputs {
  Tensor q, k, v, d_o, d_lse;
  AttentionOptions options;
};
CaseInputs make_inputs(const AttentionCase& c);

}  // namespace mh
