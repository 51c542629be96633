// What a block of queries has gathered on tiles, on its way out: divided by its sum, rounded, turned back into rows;
// and lse.
#pragma once

#include "multihead/kernels/cpu/attention/fma/block.inl"
#include "multihead/kernels/cpu/attention/fma/forward.inl"
#include "multihead/kernels/cpu/attention/fma/rows.inl"
#include "multihead/kernels/cpu/attention/tiles/bias.inl"
#include "multihead/kernels/cpu/attention/tiles/keys.inl"
#include "multihead/kernels/cpu/attention/tiles/softmax.inl"
#include "multihead/kernels/cpu/philox.inl"
#include "multihead/kernels/cpu/tile.inl"
#include "multihead/kernels/cpu/tile_pack.inl"
#include "multihead/kernels/cpu/vector_math.inl"

inline void clear_outputs(const TileSizes& t, TileQueryBlock& block) {
  if (block.fresh) memset(block.o, 0, static_cast<size_t>(4 * t.across_v * kTileBytes));
  block.fresh = false;
}

// Rows of o or dq, times `by` and narrowed, out of tiles[column / 32][even, odd][query / 16], whose rows are columns.
inline void write_tile_queries(const float* sums, const float (&by)[kTileQueries], const View& to, const Sequence& s,
                               const QueryBlock& q) {
  const int64_t width = to.size[3], stride = to.stride[2];
  uint16_t* rows = reinterpret_cast<uint16_t*>(writable(to, s.batch, q.head, s.q_begin + q.first));
  for (int half = 0; half < 2 && 16 * half < q.count; ++half, rows += 16 * stride) {
    const __m512 factor = _mm512_load_ps(by + 16 * half);
    for (int64_t unit = 0; 32 * unit < width; ++unit) {
      const float *even = sums + (4 * unit + half) * kTileFloats, *odd = even + 2 * kTileFloats;
      __m512i words[16];
#pragma GCC unroll 16
      for (int r = 0; r < 16; ++r)
        words[r] = round_pairs(_mm512_mul_ps(_mm512_load_ps(even + 16 * r), factor),
                               _mm512_mul_ps(_mm512_load_ps(odd + 16 * r), factor));
      transpose_words(words);
      uint16_t* at = rows + 32 * unit;
      if (q.count >= 16 * half + 16 && width >= 32 * unit + 32) {
#pragma GCC unroll 16
        for (int r = 0; r < 16; ++r) _mm512_storeu_si512(at + r * stride, words[r]);
      } else {
        const __mmask32 mask = static_cast<__mmask32>((uint64_t{1} << smaller(32, width - 32 * unit)) - 1);
#pragma GCC unroll 16
        for (int r = 0; r < 16; ++r)
          if (16 * half + r < q.count) _mm512_mask_storeu_epi16(at + r * stride, mask, words[r]);
      }
    }
  }
}

// log(1 + f) = f - f²/2 + f³ · P(f) on [-1/4, 1/2]: relative error 4.9e-9 before rounding (fitted by weighted least
// squares).
constexpr float kLogPast[] = {0.3333345055580139f,  -0.2500009536743164f, 0.19990861415863037f, -0.1664731204509735f,
                              0.14478397369384766f, -0.1316119283437729f, 0.10463005304336548f, -0.04507461190223694f};

// log(2^top · sum) of 16 rows, rounded once where top is large.
HWY_INLINE __m512 natural_logs(__m512 top, __m512 sum) {
  const __m512 part = _mm512_getmant_ps(sum, _MM_MANT_NORM_p75_1p5, _MM_MANT_SIGN_src);
  const __m512 whole = _mm512_getexp_ps(_mm512_div_ps(sum, part)), f = _mm512_sub_ps(part, _mm512_set1_ps(1.0f));
  const __m512 past = _mm512_fmsub_ps(polynomial(kLogPast, V{f}).raw, f, _mm512_set1_ps(0.5f));
  const __m512 log = _mm512_fmadd_ps(past, _mm512_mul_ps(f, f), f);
  const auto half = [&](__m256 t, __m256 w, __m256 l) HWY_ATTR __attribute__((always_inline)) {
    const __m512d powers = _mm512_add_pd(_mm512_cvtps_pd(t), _mm512_cvtps_pd(w));
    return _mm512_cvtpd_ps(_mm512_fmadd_pd(powers, _mm512_set1_pd(0.693147180559945309417), _mm512_cvtps_pd(l)));
  };
  const __m256 low = half(_mm512_castps512_ps256(top), _mm512_castps512_ps256(whole), _mm512_castps512_ps256(log));
  const __m256 high =
      half(_mm512_extractf32x8_ps(top, 1), _mm512_extractf32x8_ps(whole, 1), _mm512_extractf32x8_ps(log, 1));
  return _mm512_insertf32x8(_mm512_castps256_ps512(low), high, 1);
}

// As end_row without a sink, 16 rows at a time.
inline void end_tile_rows(const View& to, const Sequence& s, const TileQueryBlock& state,
                          float (&factor)[kTileQueries]) {
  const QueryBlock& q = state.q;
  for (int lane = 0; lane < kTileQueries; lane += 16) {
    const __m512 sum = _mm512_div_ps(_mm512_load_ps(state.sum + lane), _mm512_set1_ps(kMeanCut));
    const __mmask16 some = _mm512_cmp_ps_mask(sum, _mm512_setzero_ps(), _CMP_NEQ_UQ);
    _mm512_store_ps(factor + lane, _mm512_maskz_div_ps(some, _mm512_set1_ps(1.0f), sum));
    if (!to || lane >= q.count) continue;
    const __m512 lse =
        _mm512_mask_mov_ps(_mm512_set1_ps(kNone), some, natural_logs(_mm512_load_ps(state.top + lane), sum));
    float* at = static_cast<float*>(to.data) + s.batch * to.stride[0] + q.head * to.stride[1] +
                (s.q_begin + q.first + lane) * to.stride[2];
    if (to.stride[2] == 1) {
      _mm512_mask_storeu_ps(at, lanes_of(q.count - lane), lse);
      continue;
    }
    alignas(64) float each[16];
    _mm512_store_ps(each, lse);
    for (int r = 0; r < 16 && lane + r < q.count; ++r) at[r * to.stride[2]] = each[r];
  }
}

inline RowEnd end_tile_row(const Scores& scores, const TileQueryBlock& state, int r) {
  return end_row(state.sum[r] == 0 ? kNone : state.top[r], state.sum[r] / kMeanCut,
                 scores.sink ? scores.sink + state.q.head : nullptr);
}

// Divides by the sums and writes o and lse.
inline void finish_tile_queries(const AttentionForwardArgs& a, const TileSizes& t, const Sequence& s,
                                TileQueryBlock& state) {
  const QueryBlock& q = state.q;
  clear_outputs(t, state);
  alignas(64) float factor[kTileQueries];
  if (a.scores.sink) {
    for (int r = 0; r < kTileQueries; ++r) {
      const RowEnd end = end_tile_row(a.scores, state, r);
      factor[r] = end.factor;
      if (r < q.count) store_lse(a.lse, s, q, r, end.lse);
    }
  } else {
    end_tile_rows(a.lse, s, state, factor);
  }
  if (a.scores.dropout_threshold > 0)
    for (float& each : factor) each *= dropout_scale(a.scores.dropout_threshold);
  write_tile_queries(state.o, factor, a.o, s, q);
}
