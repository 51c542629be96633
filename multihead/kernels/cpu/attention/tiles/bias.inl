// The dense bias on tiles: 16 queries × 16 keys at a time, turned in registers between rows in memory and scores of 32
// queries side by side.
#pragma once

#include "multihead/kernels/cpu/attention/fma/backward_bias.inl"
#include "multihead/kernels/cpu/attention/fma/block.inl"
#include "multihead/kernels/cpu/attention/fma/scores.inl"
#include "multihead/kernels/cpu/attention/tiles/softmax.inl"
#include "multihead/kernels/cpu/tile_pack.inl"
#include "multihead/kernels/cpu/vector_math.inl"

// Lanes of 16 keys of which `count` are left.
HWY_INLINE __mmask16 lanes_of(int64_t count) { return static_cast<__mmask16>(count >= 16 ? 0xffff : (1 << count) - 1); }

HWY_INLINE __m512 widen_lanes(const float* at, __mmask16 lanes) { return _mm512_maskz_loadu_ps(lanes, at); }
HWY_INLINE __m512 widen_lanes(const f16* at, __mmask16 lanes) {
  return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(lanes, at));
}

// s · unit + bias; a bias of -inf drops the pair whatever its score is: such lanes of a masked sum keep the bias.
HWY_INLINE void add_bias_at(float* s, __m512 unit, __m512 bias) {
  const __mmask16 kept = _mm512_cmp_ps_mask(bias, _mm512_set1_ps(kNone), _CMP_NEQ_UQ);
  _mm512_store_ps(s, _mm512_mask_fmadd_ps(bias, kept, _mm512_set1_ps(kLog2E), _mm512_mul_ps(_mm512_load_ps(s), unit)));
}

// The same, of keys that lie side by side in `rows`, one row for each of 16 queries.
template <class T>
HWY_INLINE void add_bias_rows(const T* const (&rows)[16], int64_t keys, __m512 unit, float* s) {
  for (int64_t first = 0; first < keys; first += 16) {
    const int64_t count = smaller(16, keys - first);
    __m512i words[16];
#pragma GCC unroll 16
    for (int r = 0; r < 16; ++r) words[r] = _mm512_castps_si512(widen_lanes(rows[r] + first, lanes_of(count)));
    transpose_words(words);
    float* at = s + first * kTileQueries;
    if (count == 16) {
#pragma GCC unroll 16
      for (int n = 0; n < 16; ++n) add_bias_at(at + n * kTileQueries, unit, _mm512_castsi512_ps(words[n]));
    } else {
      for (int n = 0; n < count; ++n) add_bias_at(at + n * kTileQueries, unit, _mm512_castsi512_ps(words[n]));
    }
  }
}
// bf16 is turned in pairs of keys and widened after: half as many shuffles.
HWY_INLINE void add_bias_rows(const bf16* const (&rows)[16], int64_t keys, __m512 unit, float* s) {
  const __m512i upper = _mm512_set1_epi32(static_cast<int>(0xffff0000u));
  for (int64_t first = 0; first < keys; first += 32) {
    const int64_t count = smaller(32, keys - first);
    const __mmask32 lanes = static_cast<__mmask32>((uint64_t{1} << count) - 1);
    __m512i words[16];
#pragma GCC unroll 16
    for (int r = 0; r < 16; ++r) words[r] = _mm512_maskz_loadu_epi16(lanes, rows[r] + first);
    transpose_words(words);
    float* at = s + first * kTileQueries;
    const auto add_pair = [&](int n) HWY_ATTR __attribute__((always_inline)) {
      add_bias_at(at + 2 * n * kTileQueries, unit, _mm512_castsi512_ps(_mm512_slli_epi32(words[n], 16)));
      if (2 * n + 1 == count) return;
      add_bias_at(at + (2 * n + 1) * kTileQueries, unit, _mm512_castsi512_ps(_mm512_and_si512(words[n], upper)));
    };
    if (count == 32) {
#pragma GCC unroll 16
      for (int n = 0; n < 16; ++n) add_pair(n);
    } else {
      for (int n = 0; 2 * n < count; ++n) add_pair(n);
    }
  }
}

template <class T>
void bias_step_of(const View& bias, const QueryBlock& q, const TileStep& step, float unit, float* s) {
  const T* base = static_cast<const T*>(bias.data) + q.sequence * bias.stride[0] + q.head * bias.stride[1] +
                  q.first * bias.stride[2] + step.keys.begin;
  for (int lane = 0; lane < kTileQueries; lane += 16) {
    const T* rows[16];
    for (int r = 0; r < 16; ++r) rows[r] = base + smaller(lane + r, q.count - 1) * bias.stride[2];
    add_bias_rows(rows, step.keys.end - step.keys.begin, _mm512_set1_ps(unit),
                  s + (step.keys.begin - step.first) * kTileQueries + lane);
  }
}

// s · unit + the dense bias.
inline void bias_step(const View& bias, const QueryBlock& q, const TileStep& step, float unit, float* s) {
  if (bias.stride[3] == 1) {
    if (bias.dtype == DType::bf16) return bias_step_of<bf16>(bias, q, step, unit, s);
    if (bias.dtype == DType::f16) return bias_step_of<f16>(bias, q, step, unit, s);
    return bias_step_of<float>(bias, q, step, unit, s);
  }
  load_bias(bias, q, step.keys, *step.room);
  for (int64_t j = step.keys.begin; j < step.keys.end; ++j)
    for (int lane = 0; lane < kTileQueries; lane += 16)
      add_bias_at(s + (j - step.first) * kTileQueries + lane, _mm512_set1_ps(unit),
                  _mm512_loadu_ps(step.room->bias + (j - step.keys.begin) * kTileQueries + lane));
}

// Adds ds, 16 keys × 16 queries, to 16 rows, fewer of either where the tile ends. kWrite: to 0 instead, whatever the
// rows hold.
template <bool kWrite>
HWY_INLINE void add_square(const float* ds, int64_t keys, int64_t queries, float* rows, int64_t stride) {
  const __mmask16 lanes = lanes_of(keys);
  __m512i words[16];
#pragma GCC unroll 16
  for (int n = 0; n < 16; ++n) words[n] = n < keys ? _mm512_loadu_si512(ds + n * kTileQueries) : _mm512_setzero_si512();
  transpose_words(words);
  const auto add = [&](int r) HWY_ATTR __attribute__((always_inline)) {
    float* to = rows + r * stride;
    const __m512 before = kWrite ? _mm512_setzero_ps() : _mm512_maskz_loadu_ps(lanes, to);
    _mm512_mask_storeu_ps(to, lanes, _mm512_add_ps(before, _mm512_castsi512_ps(words[r])));
  };
  if (queries >= 16) {
#pragma GCC unroll 16
    for (int r = 0; r < 16; ++r) add(r);
  } else {
    for (int r = 0; r < queries; ++r) add(r);
  }
}

template <bool kWrite>
HWY_INLINE void add_squares(const View& dbias, const QueryBlock& q, KeySpan keys, const float* ds) {
  float* base = static_cast<float*>(dbias.data) + q.sequence * dbias.stride[0] + q.head * dbias.stride[1] +
                q.first * dbias.stride[2];
  for (int lane = 0; lane < q.count; lane += 16)
    for (int64_t j = keys.begin; j < keys.end; j += 16)
      add_square<kWrite>(ds + (j - keys.begin) * kTileQueries + lane, keys.end - j, q.count - lane,
                         base + lane * dbias.stride[2] + j, dbias.stride[2]);
}

// As add_dense_bias; ds (keys, 32).
inline void add_bias_gradient(const View& dbias, const QueryBlock& q, KeySpan keys, const float* ds, float* rows_room) {
  if (dbias.stride[2] == 0 || dbias.stride[3] != 1)
    add_dense_bias(dbias, q, keys, ds, rows_room);
  else
    add_squares<false>(dbias, q, keys, ds);
}

inline void write_bias_gradient(const View& dbias, const QueryBlock& q, KeySpan keys, const float* ds) {
  add_squares<true>(dbias, q, keys, ds);
}
