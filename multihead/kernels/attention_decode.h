// The decode path: few queries over many keys. Which calls it takes, and how it cuts the keys.
//
// The rows of one key head (its group of query heads times the queries) read every key and value once, together. The
// keys are cut into chunks; each gives a partial (o, max, sum), and the partials are added in ascending order.
#pragma once

#include <cstdint>

#include "multihead/kernels/attention.h"

namespace mh::kernels {

// Past 16 rows a key head's work is bound by arithmetic, and the tiles of attention_forward use registers better.
inline constexpr int64_t kDecodeMostRows = 16;
inline constexpr int64_t kDecodeMostWidth = 512;

// Keys handled between two looks at the running maximum: their scores, rows and keep marks stay in L1.
inline constexpr int64_t kDecodeBlock = 512;

// Keys of a chunk: a function of the length alone, so that neither threads nor batch companions change a bit. 512 keys
// are at least 64 KiB of cache at width 64 in i8, against which a partial costs little; at most 128 chunks keep the
// partials under 3 % of the bytes read, and leave work for as many cores where there is one head.
constexpr int64_t decode_chunk_keys(int64_t k_len) {
  const int64_t share = (k_len + 127) / 128;
  const int64_t blocks = (share + kDecodeBlock - 1) / kDecodeBlock;
  return blocks * kDecodeBlock < 512 ? 512 : blocks * kDecodeBlock;
}

constexpr int64_t decode_chunks(int64_t k_len) {
  const int64_t keys = decode_chunk_keys(k_len);
  return (k_len + keys - 1) / keys;
}

// Whether attention_decode computes this call; else attention_forward does. Not taken: dropout (training only), and
// cosine and Euclidean similarity, which need the length of each key, a second reduction that no cache stores.
inline bool decode_takes(const AttentionForwardArgs& a) {
  if (a.scores.similarity != Similarity::dot || a.scores.dropout_threshold != 0) return false;
  if (a.q.size[3] > kDecodeMostWidth || a.kv.v.size[3] > kDecodeMostWidth) return false;
  if (a.kv.k.size[1] == 0) return false;
  const int64_t group = a.q.size[1] / a.kv.k.size[1];
  for (int64_t b = 0; b < a.sequences.count; ++b) {
    if (a.sequences.data[b].q_len * group > kDecodeMostRows) return false;
  }
  return true;
}

}  // namespace mh::kernels
