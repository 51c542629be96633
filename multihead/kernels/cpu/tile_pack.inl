// bf16 rows into tiles: as they lie, turned, in pairs; padded with zeros to 16 rows and 32 columns.
//
// Columns (head width) are split in even and odd ones where they become rows or columns of a tile: tile 2n has the
// even, tile 2n + 1 the odd ones of the n-th 32. Two f32 tiles of a result then narrow to words of bf16 without a
// shuffle.
#pragma once

#include "multihead/kernels/cpu/tile.inl"
#include "multihead/kernels/cpu/vector_math.inl"

// `count` rows of `width` elements, `stride` elements apart; rows past the end read as zeros.
struct TileRows {
  const uint16_t* at;
  int64_t stride, count, width;

  // The columns [column, column + 32) that there are.
  __mmask32 columns(int64_t column) const {
    return column + 32 <= width ? ~__mmask32{0} : static_cast<__mmask32>((uint64_t{1} << (width - column)) - 1);
  }
  // `lanes`: columns(column). Without a branch for the rows that are not there.
  HWY_INLINE __m512i load(int64_t row, int64_t column, __mmask32 lanes) const {
    return _mm512_maskz_loadu_epi16(row < count ? lanes : 0, at + row * stride + column);
  }
  TileRows from(int64_t row) const { return {at + row * stride, stride, count - row, width}; }

  // Whether 32 columns of the first `many` rows are all there: unrolled loads then need no masks.
  bool whole(int64_t many, int64_t column) const { return many <= count && column + 32 <= width; }
  HWY_INLINE __m512i load_whole(int64_t row, int64_t column) const {
    return _mm512_loadu_si512(at + row * stride + column);
  }
};

inline int64_t tiles_across(int64_t width) { return (width + 31) / 32; }
// Rows that the even columns of the n-th 32 fill; the odd ones fill no more.
inline int64_t rows_of_unit(int64_t width, int64_t n) { return smaller(16, (width - 32 * n + 1) / 2); }

// 16 × 16 words.
HWY_INLINE void transpose_words(__m512i (&r)[16]) {
  __m512i t[16];
#pragma GCC unroll 8
  for (int i = 0; i < 16; i += 2) {
    t[i] = _mm512_unpacklo_epi32(r[i], r[i + 1]);
    t[i + 1] = _mm512_unpackhi_epi32(r[i], r[i + 1]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 16; i += 4) {
    r[i] = _mm512_unpacklo_epi64(t[i], t[i + 2]);
    r[i + 1] = _mm512_unpackhi_epi64(t[i], t[i + 2]);
    r[i + 2] = _mm512_unpacklo_epi64(t[i + 1], t[i + 3]);
    r[i + 3] = _mm512_unpackhi_epi64(t[i + 1], t[i + 3]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    t[i] = _mm512_shuffle_i32x4(r[i], r[i + 4], 0x88);
    t[i + 4] = _mm512_shuffle_i32x4(r[i], r[i + 4], 0xdd);
    t[i + 8] = _mm512_shuffle_i32x4(r[i + 8], r[i + 12], 0x88);
    t[i + 12] = _mm512_shuffle_i32x4(r[i + 8], r[i + 12], 0xdd);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    r[i] = _mm512_shuffle_i32x4(t[i], t[i + 8], 0x88);
    r[i + 8] = _mm512_shuffle_i32x4(t[i], t[i + 8], 0xdd);
    r[i + 4] = _mm512_shuffle_i32x4(t[i + 4], t[i + 12], 0x88);
    r[i + 12] = _mm512_shuffle_i32x4(t[i + 4], t[i + 12], 0xdd);
  }
}

// Puts zeros in the place of non-finite bf16, and tells whether there were any: in a sum of products 0 · NaN would
// reach pairs that are dropped. The largest magnitude tells first: unlike masks that leaves the port of shuffles alone.
HWY_INLINE bool replace_non_finite(__m512i (&x)[16]) {
  const __m512i size = _mm512_set1_epi16(0x7fff), exponent = _mm512_set1_epi16(0x7f80);
  __m512i largest = _mm512_setzero_si512();
#pragma GCC unroll 16
  for (int n = 0; n < 16; ++n) largest = _mm512_max_epu16(largest, _mm512_and_si512(x[n], size));
  if (HWY_LIKELY(_mm512_cmpge_epu16_mask(largest, exponent) == 0)) return false;
  for (int n = 0; n < 16; ++n)
    x[n] = _mm512_maskz_mov_epi16(_mm512_cmpneq_epi16_mask(_mm512_and_si512(x[n], exponent), exponent), x[n]);
  return true;
}

// Left operand, rows as they lie: tiles[row / 16][column / 32].
inline void pack_rows_left(const TileRows& rows, int64_t count, uint32_t* out) {
  const int64_t across = tiles_across(rows.width);
  for (int64_t c = 0; c < across; ++c) {
    const __mmask32 lanes = rows.columns(32 * c);
    for (int64_t r = 0; r < count; ++r)
      _mm512_store_si512(out + (r / 16 * across + c) * kTileFloats + r % 16 * 16, rows.load(r, 32 * c, lanes));
  }
}

// Right operand, turned: 32 rows become lanes, pairs run along the columns: tiles[column / 32][row / 16].
inline void pack_lanes_right(const TileRows& rows, uint32_t* out) {
  for (int64_t c = 0; c < tiles_across(rows.width); ++c) {
    for (int64_t half = 0; half < 2; ++half) {
      __m512i words[16];
      if (rows.whole(16 * half + 16, 32 * c)) {
#pragma GCC unroll 16
        for (int r = 0; r < 16; ++r) words[r] = rows.load_whole(16 * half + r, 32 * c);
      } else {
        const __mmask32 lanes = rows.columns(32 * c);
#pragma GCC unroll 16
        for (int r = 0; r < 16; ++r) words[r] = rows.load(16 * half + r, 32 * c, lanes);
      }
      transpose_words(words);
#pragma GCC unroll 16
      for (int r = 0; r < 16; ++r) _mm512_store_si512(out + (2 * c + half) * kTileFloats + 16 * r, words[r]);
    }
  }
}

// Words (row 2p, row 2p + 1) of the even and of the odd columns of 32.
HWY_INLINE void pair_rows(__m512i first, __m512i second, __m512i& even, __m512i& odd) {
  even = _mm512_mask_blend_epi16(0xaaaaaaaa, first, _mm512_slli_epi32(second, 16));
  odd = _mm512_mask_blend_epi16(0xaaaaaaaa, _mm512_srli_epi32(first, 16), second);
}

// The pairs of 32 rows, with zeros for non-finite elements; tells whether there were any. Even and odd columns are read
// apart: 16 vectors stay in registers.
template <bool kOdd>
HWY_INLINE bool load_pairs(const TileRows& rows, int64_t column, __m512i (&words)[16]) {
  __m512i other;
  if (rows.whole(32, column)) {
#pragma GCC unroll 16
    for (int p = 0; p < 16; ++p)
      pair_rows(rows.load_whole(2 * p, column), rows.load_whole(2 * p + 1, column), kOdd ? other : words[p],
                kOdd ? words[p] : other);
  } else {
    const __mmask32 lanes = rows.columns(column);
#pragma GCC unroll 16
    for (int p = 0; p < 16; ++p)
      pair_rows(rows.load(2 * p, column, lanes), rows.load(2 * p + 1, column, lanes), kOdd ? other : words[p],
                kOdd ? words[p] : other);
  }
  return replace_non_finite(words);
}

template <bool kOdd, bool kTurn>
HWY_INLINE bool pack_pairs(const TileRows& rows, int64_t column, uint32_t* to) {
  __m512i words[16];
  const bool seen = load_pairs<kOdd>(rows, column, words);
  if constexpr (kTurn) transpose_words(words);
#pragma GCC unroll 16
  for (int r = 0; r < 16; ++r) _mm512_store_si512(to + 16 * r, words[r]);
  return seen;
}

// Left operand, turned: 32 rows become the pairs, columns the tile's rows: tiles[column / 32][even, odd].
// Non-finite elements become zeros; the result tells whether there were any.
inline bool pack_columns_left(const TileRows& rows, uint32_t* out) {
  bool seen = false;
  for (int64_t c = 0; c < tiles_across(rows.width); ++c) {
    uint32_t* to = out + 2 * c * kTileFloats;
    seen |= pack_pairs<false, true>(rows, 32 * c, to);
    seen |= pack_pairs<true, true>(rows, 32 * c, to + kTileFloats);
  }
  return seen;
}

// Right operand, pairs of rows, columns in lanes: 32 rows, tiles[column / 32][even, odd], `apart` words between tiles
// of one pair of columns and the next. Non-finite elements become zeros; the result tells whether there were any.
inline bool pack_pairs_right(const TileRows& rows, uint32_t* out, int64_t apart) {
  bool seen = false;
  for (int64_t c = 0; c < tiles_across(rows.width); ++c) {
    seen |= pack_pairs<false, false>(rows, 32 * c, out + c * apart);
    seen |= pack_pairs<true, false>(rows, 32 * c, out + c * apart + kTileFloats);
  }
  return seen;
}

// Words (low, high) of the upper halves of two vectors of f32: narrows by truncation.
HWY_INLINE __m512i truncate_pairs(__m512 low, __m512 high) {
  const __m512i upper = _mm512_set1_epi32(static_cast<int>(0xffff0000u));
  return _mm512_ternarylogic_epi32(_mm512_srli_epi32(_mm512_castps_si512(low), 16), _mm512_castps_si512(high), upper,
                                   0xf8);
}

// Rounds to the nearest bf16, ties to even; NaN stays NaN. The result is in the upper half of each lane.
HWY_INLINE __m512 round_to_bf16(__m512 x) {
  const __m512i bits = _mm512_castps_si512(x);
  const __m512i even = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
  const __m512i rounded = _mm512_add_epi32(bits, _mm512_add_epi32(even, _mm512_set1_epi32(0x7fff)));
  const __mmask16 nan = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
  return _mm512_castsi512_ps(_mm512_mask_or_epi32(rounded, nan, bits, _mm512_set1_epi32(0x400000)));
}

// Words of two vectors rounded so. The instruction takes subnormal numbers for 0.
HWY_INLINE __m512i round_pairs(__m512 low, __m512 high) {
#if defined(__AVX512BF16__)
  const __m512i place = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7, 22, 6, 21,
                                         5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
  return _mm512_permutexvar_epi16(place, (__m512i)_mm512_cvtne2ps_pbh(high, low));
#else
  return truncate_pairs(round_to_bf16(low), round_to_bf16(high));
#endif
}
