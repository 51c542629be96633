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

// Keys whose scores are made before their values are read. Runs this long keep the prefetchers on one stream (Zen 4,
// f32 from DRAM: 0.78 of plain read bandwidth with 64 keys, 0.94 with 512, 0.99 with 1024); the scores of 16 rows fill
// 64 KiB.
inline constexpr int64_t kDecodeBlock = 1024;

// Keys of a chunk: a function of the length alone, so that neither threads nor batch companions change a bit. Short
// caches are cut into 512 keys, which give a second core work early; from 16 chunks on into whole blocks; and no cache
// into more than 128, which keeps the partial results under 3 % of the bytes read.
constexpr int64_t decode_chunk_keys(int64_t k_len) {
  if (k_len <= 16 * 512) return 512;
  const int64_t blocks = (k_len + 128 * kDecodeBlock - 1) / (128 * kDecodeBlock);
  return blocks * kDecodeBlock;
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
