// The backward pass on tiles, one item: 64 keys against 32 queries. From products to weights and their gradients, and
// the tile products around them.
#pragma once

#include "multihead/kernels/cpu/attention/fma/block.inl"
#include "multihead/kernels/cpu/attention/tiles/softmax.inl"
#include "multihead/kernels/cpu/philox.inl"
#include "multihead/kernels/cpu/tile.inl"
#include "multihead/kernels/cpu/tile_pack.inl"
#include "multihead/kernels/cpu/vector_math.inl"

constexpr int64_t kItemKeys = 64;
constexpr int64_t kSpanKeys = 128;  // keys whose ds meet in one product for dq: four steps of 32
constexpr int64_t kSpanBlocks =
    4;  // blocks of 32 queries whose p and ds meet in one product for dk and dv: four steps of 32
constexpr int64_t kSpanQueries = kSpanBlocks * kTileQueries;
constexpr int kItemSlices = kItemKeys / 2;

// 32 queries of a head with what their gradient needs.
struct TileGradBlock {
  TileQueryBlock state;  // words, factor; o is this task's part of dq: tiles[column / 32][even, odd][query / 16]
  uint32_t* d_o_words;   // right operand, tiles[column / 32][query / 16]
  bool unclean;          // d_o has non-finite elements
  alignas(64) float lse[kTileQueries];  // in units of log 2; +inf for lanes past the end and rows without keys: p = 0
  alignas(64) float delta[kTileQueries];
  alignas(64) float row_sum[kTileQueries];  // euclidean: Σ_j ds
  alignas(64) float into_dk[kTileQueries];  // what multiplies ds · q in dk, unless the same for the whole task
};

struct TileGradRoom {
  float *s[2], *dp[2];  // (kItemKeys, 32)
  float* ds;            // likewise, for the biases
  float* p;             // likewise, for options that need more than the fast path
  uint16_t* kept;       // dropout: (kItemKeys, 2) masks of queries that keep their weight, or null
  uint32_t* p_left;     // left operand, tiles[key / 16][block] of a half span
  uint32_t* ds_left;
  uint32_t* ds_right;  // right operand, tiles[key / 32][block][query / 16] of a span
  ScoreRoom scores[2];
};

HWY_INLINE __m512 round_up_half(__m512 x) {
  return _mm512_castsi512_ps(_mm512_add_epi32(_mm512_castps_si512(x), _mm512_set1_epi32(0x8000)));
}

// The upper halves of 32 consecutive lanes.
HWY_INLINE __m512i upper_halves(__m512 first, __m512 second) {
  alignas(64) static constexpr uint16_t kOdd[32] = {1,  3,  5,  7,  9,  11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31,
                                                    33, 35, 37, 39, 41, 43, 45, 47, 49, 51, 53, 55, 57, 59, 61, 63};
  return _mm512_permutex2var_epi16(_mm512_castps_si512(first), _mm512_load_si512(kOdd), _mm512_castps_si512(second));
}

// Where block `block` of a span puts the words of key `key` of an item, as a row of a left operand.
HWY_INLINE int64_t left_row(int64_t key, int64_t block) {
  return (key / 16 * kSpanBlocks + block) * kTileFloats + key % 16 * 16;
}

// A dropped pair, or one of a row without keys, has neither weight nor gradient, whatever lse, delta and dp are there.
HWY_INLINE __mmask16 live_lanes(__m512 lse) { return _mm512_cmp_ps_mask(lse, _mm512_set1_ps(-kNone), _CMP_NEQ_UQ); }
HWY_INLINE __mmask16 kept_pairs(__mmask16 live, __m512 score) {
  return _mm512_mask_cmp_ps_mask(live, score, _mm512_set1_ps(kNone), _CMP_NEQ_UQ);
}
// x · by; 0 stays 0, whatever the factor of a dropped pair is.
HWY_INLINE __m512 times(__m512 x, __m512 by) {
  return _mm512_maskz_mul_ps(_mm512_cmp_ps_mask(x, _mm512_setzero_ps(), _CMP_NEQ_UQ), x, by);
}

// p and ds of an item in slices of two keys, straight from scores to operands. kKeep: ds is kept as f32 too, for the
// biases; kDrop: through dropout.
template <bool kKeep, bool kDrop>
struct GradSlices {
  __m512 factor, lse[2], delta[2];
  __mmask16 live[2];
  const float *s, *dp;
  uint32_t *p_left, *ds_left, *ds_right;  // of this item's block
  float* kept_ds;
  const uint16_t* kept_weights;
  __m512 scale;  // of those
  int done = 0;

  HWY_INLINE void slice(int n) {
    __m512 x[4], p[2][2], ds[2][2];
    __mmask16 kept[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      const __m512 score = _mm512_load_ps(s + 2 * n * kTileQueries + 16 * i);
      kept[i] = kept_pairs(live[i % 2], score);
      x[i] = _mm512_fmsub_ps(score, factor, lse[i % 2]);
    }
    short_exp2(x, 1.0f);
#pragma GCC unroll 2
    for (int key = 0; key < 2; ++key) {
#pragma GCC unroll 2
      for (int half = 0; half < 2; ++half) {
        const int64_t i = 2 * key + half, at = (2 * n + key) * kTileQueries + 16 * half;
        __m512 above, weight;
        if constexpr (kDrop) {
          const __m512 by = _mm512_maskz_mov_ps(kept_weights[2 * (2 * n + key) + half], scale);
          above = _mm512_fmsub_ps(_mm512_load_ps(dp + at), by, delta[half]);
          weight = _mm512_maskz_mul_ps(kept[i], x[i], by);
        } else {
          above = _mm512_sub_ps(_mm512_load_ps(dp + at), delta[half]);
          weight = _mm512_maskz_mov_ps(kept[i], x[i]);
        }
        const __m512 slope = _mm512_maskz_mul_ps(kept[i], x[i], above);
        if constexpr (kKeep) _mm512_store_ps(kept_ds + at, slope);
        ds[key][half] = round_up_half(slope);
        p[key][half] = round_up_half(weight);
      }
      const int64_t row = left_row(2 * n + key, 0);
      _mm512_store_si512(p_left + row, upper_halves(p[key][0], p[key][1]));
      _mm512_store_si512(ds_left + row, upper_halves(ds[key][0], ds[key][1]));
    }
    uint32_t* to = ds_right + n / 16 * kSpanBlocks * kSlotWords + n % 16 * 16;
    _mm512_store_si512(to, truncate_pairs(ds[0][0], ds[1][0]));
    _mm512_store_si512(to + kTileFloats, truncate_pairs(ds[0][1], ds[1][1]));
  }
};

// p and ds of an item as f32: dropout, then the gradients of the biases, then the slope of the cap.
inline void weigh_item(const Scores& scores, const TileGradBlock& block, const TileStep& item, const float* s,
                       const float* dp, const TileGradRoom& room) {
  const __m512 factor = _mm512_set1_ps(item.factor), scale = _mm512_set1_ps(dropout_scale(scores.dropout_threshold));
  for (int64_t at = item.first_group() * 32 * kTileQueries; at < item.end_group() * 32 * kTileQueries; at += 16) {
    const int64_t lane = at % kTileQueries;
    const __m512 score = _mm512_load_ps(s + at), lse = _mm512_load_ps(block.lse + lane);
    const __mmask16 kept = kept_pairs(live_lanes(lse), score);
    const __m512 p = _mm512_maskz_mov_ps(kept, short_exp2(_mm512_fmsub_ps(score, factor, lse), 1.0f));
    const __m512 by = room.kept ? _mm512_maskz_mov_ps(room.kept[at / 16], scale) : _mm512_set1_ps(1.0f);
    const __m512 above = _mm512_fmsub_ps(_mm512_load_ps(dp + at), by, _mm512_load_ps(block.delta + lane));
    _mm512_store_ps(room.p + at, _mm512_mul_ps(p, by));
    _mm512_store_ps(room.ds + at, _mm512_maskz_mul_ps(kept, p, above));
  }
}

// room.p and room.ds as operands; into_dq[key]: what multiplies ds · k in dq.
inline void pack_item(const TileGradBlock& block, const TileStep& item, const TileGradRoom& room, const float* into_dq,
                      uint32_t* p_left, uint32_t* ds_left, uint32_t* ds_right) {
  const int64_t begin = 32 * item.first_group(), end = 32 * item.end_group();
  for (int64_t key = begin; key < end; ++key) {
    const float *p = room.p + key * kTileQueries, *ds = room.ds + key * kTileQueries;
    const __m512 low = times(_mm512_load_ps(ds), _mm512_load_ps(block.into_dk));
    const __m512 high = times(_mm512_load_ps(ds + 16), _mm512_load_ps(block.into_dk + 16));
    const int64_t row = left_row(key, 0);
    _mm512_store_si512(p_left + row,
                       upper_halves(round_up_half(_mm512_load_ps(p)), round_up_half(_mm512_load_ps(p + 16))));
    _mm512_store_si512(ds_left + row, upper_halves(round_up_half(low), round_up_half(high)));
  }
  for (int64_t key = begin; key < end; key += 2) {
    for (int half = 0; half < 2; ++half) {
      const float* ds = room.ds + key * kTileQueries + 16 * half;
      const __m512 first = times(_mm512_load_ps(ds), _mm512_set1_ps(into_dq[key]));
      const __m512 second = times(_mm512_load_ps(ds + kTileQueries), _mm512_set1_ps(into_dq[key + 1]));
      _mm512_store_si512(ds_right + key / 32 * kSpanBlocks * kSlotWords + half * kTileFloats + key % 32 / 2 * 16,
                         truncate_pairs(round_up_half(first), round_up_half(second)));
    }
  }
}

// 32 rows of a left operand times 32 lanes, `parts` times 32 deep: out (32, 32). kParts: 0 where only known at run
// time.
template <int N, int kParts, bool kFirst, class Tiles, class Beat>
HWY_INLINE void multiply_lanes_part(Tiles& tiles, const uint32_t* left, const uint32_t* right, int64_t parts,
                                    Beat& beat) {
  tiles.template stream<4>(left);
  tiles.template load<6>(right);
  if constexpr (kFirst) tiles.template zero<0>();
  tiles.template dot<0, 4, 6>();
  beat.template after<N>();
  tiles.template load<7>(right + kTileFloats);
  if constexpr (kFirst) tiles.template zero<1>();
  tiles.template dot<1, 4, 7>();
  beat.template after<N + 1>();
  tiles.template stream<5>(left + parts * kTileFloats);
  if constexpr (kFirst) tiles.template zero<2>();
  tiles.template dot<2, 5, 6>();
  beat.template after<N + 2>();
  if constexpr (kFirst) tiles.template zero<3>();
  tiles.template dot<3, 5, 7>();
  beat.template after<N + 3>();
}
template <int N, int kParts, class Tiles, class Beat>
HWY_INLINE void multiply_lanes(Tiles& tiles, const uint32_t* left, const uint32_t* right, int64_t parts, float* out,
                               Beat& beat) {
  static_assert(kParts == 0 || kParts == 2 || kParts == 4);
  multiply_lanes_part<N, kParts, true>(tiles, left, right, parts, beat);
  if constexpr (kParts >= 2)
    multiply_lanes_part<N + 4, kParts, false>(tiles, left + kTileFloats, right + kSlotWords, parts, beat);
  if constexpr (kParts >= 4) {
    multiply_lanes_part<N + 8, kParts, false>(tiles, left + 2 * kTileFloats, right + 2 * kSlotWords, parts, beat);
    multiply_lanes_part<N + 12, kParts, false>(tiles, left + 3 * kTileFloats, right + 3 * kSlotWords, parts, beat);
  }
  if constexpr (kParts == 0)
    for (int64_t c = 1; c < parts; ++c)
      multiply_lanes_part<0, 0, false>(tiles, left + c * kTileFloats, right + c * kSlotWords, parts, beat);
  tiles.template store<0>(out, kScoreBytes);
  tiles.template store<1>(out + 16, kScoreBytes);
  tiles.template store<2>(out + 16 * kTileQueries, kScoreBytes);
  tiles.template store<3>(out + 16 * kTileQueries + 16, kScoreBytes);
}

// sums += Σ_n left(n) · right(n); step(n, upper, lower, right) gives the operands of one 32, right two tiles.
template <class Tiles, class Step>
HWY_INLINE void add_tiles(Tiles& tiles, const TileBlock& sums, int64_t steps, Step step) {
  if constexpr (Tiles::kWholeSums) {
    tiles.template sum<true>(sums, 16 * steps, step);
  } else {
    tiles.template load<0>(sums.at);
    tiles.template load<1>(sums.at + sums.beside);
    tiles.template load<2>(sums.at + sums.below);
    tiles.template load<3>(sums.at + sums.below + sums.beside);
    for (int64_t n = 0; n < steps; ++n) {
      const uint32_t *upper, *lower, *right;
      step(n, upper, lower, right);
      tiles.template load<4>(upper);
      tiles.template load<6>(right);
      tiles.template dot<0, 4, 6>();
      tiles.template load<7>(right + kTileFloats);
      tiles.template dot<1, 4, 7>();
      tiles.template load<5>(lower);
      tiles.template dot<2, 5, 6>();
      tiles.template dot<3, 5, 7>();
    }
    tiles.template store<0>(sums.at);
    tiles.template store<1>(sums.at + sums.beside);
    tiles.template store<2>(sums.at + sums.below);
    tiles.template store<3>(sums.at + sums.below + sums.beside);
  }
}

// dk or dv of 32 keys += left (p or ds of the blocks in `blocks`) · pairs of q or d_o rows. sums: tiles[key /
// 16][column / 32][even, odd]; pairs: tiles[block][column / 32][even, odd].
template <class Tiles>
HWY_NOINLINE void add_key_gradients(Tiles& tiles, const uint32_t* left, const uint32_t* pairs, int64_t across,
                                    const int8_t* blocks, int64_t count, float* sums) {
  for (int64_t unit = 0; unit < across; ++unit) {
    add_tiles(
        tiles, {sums + unit * 2 * kTileFloats, 16, kTileFloats, across * 2 * kTileFloats}, count,
        [&](int64_t n, const uint32_t*& upper, const uint32_t*& lower, const uint32_t*& right) HWY_ATTR
        __attribute__((always_inline)) {
          upper = left + blocks[n] * kTileFloats;
          lower = upper + kSpanBlocks * kTileFloats;
          right = pairs + (blocks[n] * across + unit) * 2 * kTileFloats;
        });
  }
}

// dq of a block += turned keys · ds over the groups of 32 keys in `groups`.
template <class Tiles>
HWY_NOINLINE void add_query_gradients(Tiles& tiles, const uint32_t* turned, const uint32_t* ds_right, int64_t block,
                                      int64_t width, const int8_t* groups, int64_t count, float* dq) {
  const int64_t across = tiles_across(width);
  for (int64_t unit = 0; unit < across; ++unit) {
    add_tiles(
        tiles, {dq + unit * 4 * kTileFloats, 16, kTileFloats, 2 * kTileFloats, rows_of_unit(width, unit)}, count,
        [&](int64_t n, const uint32_t*& upper, const uint32_t*& lower, const uint32_t*& right) HWY_ATTR
        __attribute__((always_inline)) {
          upper = turned + (groups[n] * across + unit) * 2 * kTileFloats;
          lower = upper + kTileFloats;
          right = ds_right + (groups[n] * kSpanBlocks + block) * kSlotWords;
        });
  }
}

// Adds the non-finite elements of d_o, zeros in its pairs, to dv of the keys that their rows keep. sums: of the item's
// 64 keys.
inline void add_non_finite_d_o(const TileRows& d_o, const TileStep& item, const float* s, int64_t across, float* sums) {
  for (int64_t r = 0; r < d_o.count && r < kTileQueries; ++r) {
    for (int64_t d = 0; d < d_o.width; ++d) {
      const uint16_t bits = d_o.at[r * d_o.stride + d];
      if ((bits & 0x7f80) != 0x7f80) continue;
      const uint32_t word = static_cast<uint32_t>(bits) << 16;
      float x;
      memcpy(&x, &word, 4);
      for (int64_t key = item.keys.begin - item.first; key < item.keys.end - item.first; ++key) {
        if (s[key * kTileQueries + r] == kNone) continue;
        sums[((key / 16 * across + d / 32) * 2 + d % 2) * kTileFloats + key % 16 * 16 + d % 32 / 2] += x;
      }
    }
  }
}
