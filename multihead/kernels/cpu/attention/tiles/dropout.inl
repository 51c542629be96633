// Dropout of weights on tiles: pairs of bf16, keys down, 32 queries across.
#pragma once

#include "multihead/kernels/cpu/attention/fma/block.inl"
#include "multihead/kernels/cpu/attention/tiles/softmax.inl"
#include "multihead/kernels/cpu/tile.inl"

// The two halves of a · by: five instructions, where the portable way takes nine.
HWY_INLINE void wide_words(__m512i a, uint32_t by, __m512i& high, __m512i& low) {
  const __m512i factor = _mm512_set1_epi32(static_cast<int>(by));
  const __m512i even = _mm512_mul_epu32(a, factor), odd = _mm512_mul_epu32(_mm512_srli_epi64(a, 32), factor);
  high = _mm512_mask_shuffle_epi32(odd, 0x5555, even, static_cast<_MM_PERM_ENUM>(0xf5));
  low = _mm512_mask_shuffle_epi32(even, 0xaaaa, odd, static_cast<_MM_PERM_ENUM>(0xa0));
}

// As dropout.inl has it: words[e / 2] holds the 16 bits of key 8 · octet + e, the low half for even e.
HWY_INLINE void tile_dropout_words(uint64_t seed, int64_t b, int64_t h, __m512i row, int64_t octet,
                                   __m512i (&words)[4]) {
  __m512i c0 = _mm512_set1_epi32(static_cast<int>(b)), c1 = _mm512_set1_epi32(static_cast<int>(h)), c2 = row,
          c3 = _mm512_set1_epi32(static_cast<int>(octet));
  uint32_t k0 = static_cast<uint32_t>(seed), k1 = static_cast<uint32_t>(seed >> 32);
#pragma GCC unroll 7
  for (int round = 0; round < 7; ++round) {
    __m512i high0, low0, high1, low1;
    wide_words(c0, 0xD2511F53u, high0, low0);
    wide_words(c2, 0xCD9E8D57u, high1, low1);
    c0 = _mm512_ternarylogic_epi32(high1, c1, _mm512_set1_epi32(static_cast<int>(k0)), 0x96);
    c1 = low1;
    c2 = _mm512_ternarylogic_epi32(high0, c3, _mm512_set1_epi32(static_cast<int>(k1)), 0x96);
    c3 = low0;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  words[0] = c0, words[1] = c1, words[2] = c2, words[3] = c3;
}

// kept[2 · key + half]: which of 16 queries keep their weight of a key that rows of the step can reach.
inline void keep_weights(const Scores& scores, const QueryBlock& q, const TileStep& step, uint16_t* kept) {
  const __m512i threshold = _mm512_set1_epi32(static_cast<int>(scores.dropout_threshold)),
                low = _mm512_set1_epi32(0xffff);
  const __m512i lane = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
  for (int64_t key = 32 * step.first_group(); key < 32 * step.end_group(); key += 8) {
    for (int half = 0; half < 2; ++half) {
      const __m512i row = _mm512_add_epi32(lane, _mm512_set1_epi32(static_cast<int>(q.first) + 16 * half));
      __m512i words[4];
      tile_dropout_words(scores.dropout_seed, q.sequence, q.head, row, (step.first + key) / 8, words);
      uint16_t* at = kept + 2 * key + half;
      for (int n = 0; n < 4; ++n, at += 4) {
        at[0] = _mm512_cmpge_epu32_mask(_mm512_and_si512(words[n], low), threshold);
        at[2] = _mm512_cmpge_epu32_mask(_mm512_srli_epi32(words[n], 16), threshold);
      }
    }
  }
}

// Zeroes the weights that dropout drops; the sums have taken them.
inline void drop_weights(const Scores& scores, const QueryBlock& q, int64_t first, int64_t count, uint32_t* p) {
  const bool all = scores.dropout_threshold >= 65536;
  const __m512i threshold = _mm512_set1_epi16(static_cast<int16_t>(scores.dropout_threshold));
  const __m512i lane = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
  for (int64_t octet = 0; octet < count / 8; ++octet) {
    for (int half = 0; half < 2; ++half) {
      const __m512i row = _mm512_add_epi32(lane, _mm512_set1_epi32(static_cast<int>(q.first) + 16 * half));
      __m512i words[4];
      tile_dropout_words(scores.dropout_seed, q.sequence, q.head, row, first / 8 + octet, words);
      uint32_t* at = p + octet / 4 * kSlotWords + half * kTileFloats + octet % 4 * 64;
      for (int n = 0; n < 4; ++n) {
        const __mmask32 kept = all ? 0 : _mm512_cmpge_epu16_mask(words[n], threshold);
        _mm512_store_si512(at + 16 * n, _mm512_maskz_mov_epi16(kept, _mm512_load_si512(at + 16 * n)));
      }
    }
  }
}
