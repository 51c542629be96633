// The contract of the attention kernels: what they are handed, the formula, the derivative. Semantics:
// docs/semantics.md.
//
//   s   = scale[h] · similarity(q, k)                 cap · tanh(s / cap) if cap > 0
//   s  += relative[h][position - j] + bias            s = -inf where the masks drop; a score of -inf is a dropped pair
//   lse = log(Σ exp(s) + exp(sink))                   p = exp(s - lse)        o = Σ dropout(p) · v
//
// Ops have checked everything: kernels never throw and never read past the sizes given here.
#pragma once

#include <cstdint>

#include "multihead/base/view.h"

namespace mh::kernels {

enum class Similarity : uint8_t { dot, cosine, euclidean };

// One sequence of the call, padded or packed: rows [q_begin, q_begin + q_len) and keys [k_begin, k_begin + k_len) of
// batch entry `batch`. Its number in the list is `b` for masks, bias, documents and the dropout counter.
struct Sequence {
  int64_t batch = 0;
  int64_t q_begin = 0, q_len = 0;
  int64_t k_begin = 0, k_len = 0;
  int64_t position = 0;  // of its first query
  int64_t prefix = 0;    // with Scores::has_prefix: the first keys that every query may see
  bool scattered =
      false;  // a document's keys lie in several places: Scores::document_begin tells nothing of this sequence
};

struct Sequences {
  const Sequence* data = nullptr;
  int64_t count = 0;
};

// Keys and values: (batch, Hkv, Tk, D) with a unit last stride (f32, bf16, f16, or i8 with one scale per key).
// Paged: k and v are (pages, Hkv, page, D) and key j of sequence b lies in row j % page of page pages(b, j / page);
// scales are laid out alike without the last axis, as f32.
struct KeyValues {
  View k, v;
  View k_scale, v_scale;  // i8 only: (batch, Hkv, Tk) or (pages, Hkv, page)
  View pages;             // i32 (B, blocks); null: not paged
};

struct DenseMask {
  View where;        // u8 or bool (B, H, Tq, Tk), any stride may be 0
  bool keep = true;  // keeps where non-zero; false: drops where non-zero
};

inline constexpr int64_t kUnbounded = INT64_MAX;
inline constexpr int kMaxDenseMasks = 4;

// Everything between q·k and the softmax.
struct Scores {
  Similarity similarity = Similarity::dot;
  const float* scale = nullptr;  // (H): scale, the same for all heads, or tau for cosine
  float cap = 0;

  // Keeps position - behind <= j <= position + ahead; with has_prefix also j <= max(position, prefix - 1).
  int64_t behind = kUnbounded, ahead = kUnbounded;
  bool has_prefix = false;
  View q_documents, k_documents;  // i32 (B, Tq) and (B, Tk): keeps equal numbers
  // (B, Tq), or null where all sequences are scattered: row i keeps of its document the keys [begin, end).
  const int32_t *document_begin = nullptr, *document_end = nullptr;
  DenseMask dense[kMaxDenseMasks];
  int dense_count = 0;

  // ALiBi and T5: the bias of head h at distance position - j = d is relative[h · relative_count + d - relative_min].
  // attention_decode, which would spend as long on such an array as on the keys, takes less: -slopes[h] · |d| where
  // there are slopes, f32 (H); else the nearest entry where d lies outside the array. The other kernels are given every
  // distance.
  const float* relative = nullptr;
  int64_t relative_count = 0, relative_min = 0;
  View slopes;
  View bias;  // f32, bf16 or f16 (B, H, Tq, Tk), any stride may be 0

  const float* sink = nullptr;  // (H) or null

  // Philox4x32-7, key = seed, counter = (b, h, i, j / 8); keeps where the 16 bits >= threshold. 0: no dropout.
  uint32_t dropout_threshold = 0;  // 1 … 65536
  uint64_t dropout_seed = 0;
};

// q (batch, H, rows, Dk) and o (batch, H, rows, Dv) of one float type, lse f32 (batch, H, rows) with any strides, may
// be null. H % Hkv == 0; query head h reads key head h / (H / Hkv). Rows outside every sequence are not written.
struct AttentionForwardArgs {
  View q;
  KeyValues kv;
  Scores scores;
  Sequences sequences;
  View o, lse;
};

// Given o, lse of the forward call and the gradients d_o, d_lse (may be null):
//   dp = d_o · v (through dropout)    Δ = Σ d_o · o - d_lse    ds = p · (dp - Δ)
//   dv = Σ_i dropout(p) · d_o    dbias = ds summed over broadcast axes    dsink[h] = -Σ p_sink · Δ
// dq, dk, dv have the types and shapes of q, k, v and are overwritten; rows and keys outside every sequence are not
// written. k, v are neither paged nor i8. Any output may be null.
struct AttentionBackwardArgs {
  View q;
  KeyValues kv;
  Scores scores;
  Sequences sequences;
  View o, lse, d_o, d_lse;
  View dq, dk, dv;
  View dbias;                  // f32 (B, H, Tq, Tk) with the broadcast strides of bias; overwritten
  float* drelative = nullptr;  // (H, relative_count); overwritten
  float* dsink = nullptr;      // (H); overwritten
  float* dscale = nullptr;     // (H): gradient of tau, cosine only; overwritten
};

// p = exp(s - lse) before dropout for the chosen heads and rows (row numbers inside the sequence).
struct AttentionWeightsArgs {
  View q;
  KeyValues kv;
  Scores scores;
  Sequences sequences;
  View lse;
  const int32_t* heads = nullptr;  // head_count of them
  int64_t head_count = 0;
  const int32_t* rows = nullptr;  // row_count of them; a row past a sequence's end gives zeros
  int64_t row_count = 0;
  View weights;  // f32 (B, head_count, row_count, Tk); keys past a sequence's end get 0
};

// The forward call, and the mean over heads of p in the same pass. Without dropout: the exponentials are kept as they
// are multiplied with v. Rows and keys past a sequence's end get 0.
struct AttentionMeanArgs {
  AttentionForwardArgs call;
  View mean;  // f32 (B, Tq, Tk), unit last stride
};

// Streamed over keys, never Tq × Tk. Each output may be null. Rows and keys past a sequence's end get 0 (keys: -1).
struct AttentionStatisticsArgs {
  View q;
  KeyValues kv;
  Scores scores;
  Sequences sequences;
  View lse;
  View entropy;      // f32 (B, H, Tq): -Σ p log p in nats, a sink's share included
  View top_keys;     // i32 (B, H, Tq, n), n <= 64: largest weights first, equal ones by smaller key; -1 where fewer are
                     // kept
  View top_weights;  // f32 (B, H, Tq, n)
  View received;     // f32 (B, H, Tk): Σ over rows of p
  View distance;     // f32 (B, H, Tq): Σ p · |position - j|
};

}  // namespace mh::kernels
