// From products to scores on tiles: similarity, cap, biases and masks, each a pass over a step that lies in the first
// cache.
#pragma once

#include "multihead/kernels/cpu/attention/fma/block.inl"
#include "multihead/kernels/cpu/attention/fma/rows.inl"
#include "multihead/kernels/cpu/attention/tiles/bias.inl"
#include "multihead/kernels/cpu/attention/tiles/softmax.inl"
#include "multihead/kernels/cpu/vector_math.inl"

// Whether products need nothing but masks: they then stay in their unit, since -inf times a positive factor stays -inf.
inline bool masks_only(const Scores& scores, int64_t head) {
  return scores.similarity == Similarity::dot && scores.scale[head] > 0 && scores.cap <= 0 && !scores.relative &&
         !scores.bias;
}

// -inf where the masks drop. Stores alone: the scores need not be read.
inline void mask_step(const Scores& scores, const QueryBlock& q, const TileStep& step, float* s) {
  const __m512 none = _mm512_set1_ps(kNone);
  for (int half = 0; half < 2; ++half) {
    const int lane = 16 * half;
    float* at = s + lane - step.first * kTileQueries;
    if (step.kind.banded) {
      const __m512i low = _mm512_loadu_si512(q.low + lane), high = _mm512_loadu_si512(q.high + lane);
      for (int64_t j = step.keys.begin; j < step.keys.end; ++j) {
        const __m512i key = _mm512_set1_epi32(static_cast<int>(j));
        const __mmask16 out = _mm512_cmplt_epi32_mask(key, low) | _mm512_cmpgt_epi32_mask(key, high);
        _mm512_mask_store_ps(at + j * kTileQueries, out, none);
      }
    }
    if (step.kind.documents) {
      const View& d = scores.k_documents;
      const int32_t* ids = static_cast<const int32_t*>(d.data) + q.sequence * d.stride[0];
      const __m512i mine = _mm512_loadu_si512(q.document + lane);
      for (int64_t j = step.keys.begin; j < step.keys.end; ++j)
        _mm512_mask_store_ps(at + j * kTileQueries,
                             _mm512_cmpneq_epi32_mask(mine, _mm512_set1_epi32(ids[j * d.stride[1]])), none);
    }
    if (step.kind.dense) {
      for (int64_t j = step.keys.begin; j < step.keys.end; ++j) {
        const int64_t bit = j - step.classified;
        const __m512i kept = _mm512_loadu_si512(step.room->kept + bit / 32 * kMaxQueries + lane);
        _mm512_mask_store_ps(at + j * kTileQueries, _mm512_testn_epi32_mask(kept, _mm512_set1_epi32(1 << (bit % 32))),
                             none);
      }
    }
  }
}

// Products into units of log 2 where the similarity is not dot. of_key: taken_of_key() of each.
inline void scale_step(const Scores& scores, const TileQueryBlock& state, const float* of_key, const TileStep& step,
                       float* s) {
  const float of_square = units_of(scores, state.q.head).square;
  const int64_t begin = step.keys.begin - step.first, end = step.keys.end - step.first;
  for (int lane = 0; lane < kTileQueries; lane += 16) {
    const __m512 factor = _mm512_loadu_ps(state.factor + lane), offset = _mm512_loadu_ps(state.q.offset + lane);
    const auto each = [&](auto score) HWY_ATTR __attribute__((always_inline)) {
      for (int64_t j = begin; j < end; ++j) {
        float* x = s + j * kTileQueries + lane;
        _mm512_store_ps(x, score(_mm512_load_ps(x), of_key[j]));
      }
    };
    if (scores.similarity == Similarity::cosine)
      each([&](__m512 x, float key) HWY_ATTR { return _mm512_mul_ps(x, _mm512_mul_ps(factor, _mm512_set1_ps(key))); });
    else if (scores.similarity == Similarity::euclidean)
      each([&](__m512 x, float key)
               HWY_ATTR { return _mm512_fmadd_ps(x, factor, _mm512_add_ps(offset, _mm512_set1_ps(of_square * key))); });
    else
      each([&](__m512 x, float) HWY_ATTR { return _mm512_mul_ps(x, factor); });
  }
}

// tanh as x · P(x²) / Q(x²) on |x| <= kMostTanh, where f32 reaches 1: relative error 2.2e-8 before rounding (fitted by
// iterated weighted least squares), also near 0. A capped forward pass takes 1.2 times the plain one, by the tanh of
// 2^x 1.32 times (Zen 4, width 64); that one serves where a slope is wanted, which this one has not where it saturates.
constexpr float kMostTanh = 9.02f;
constexpr float kTanhOver[] = {1.0f, 0.13382687483f, 0.0034974579273f, 2.0635826284e-05f, 1.3384295858e-08f};
constexpr float kTanhUnder[] = {1.0f, 0.46716008731f, 0.025884361905f, 0.00032885177467f, 7.7902512806e-07f};

HWY_INLINE __m512 short_tanh(__m512 all) {
  // The second operand is what min and max give where one is NaN.
  const __m512 x = _mm512_max_ps(_mm512_set1_ps(-kMostTanh), _mm512_min_ps(_mm512_set1_ps(kMostTanh), all));
  const V square{_mm512_mul_ps(x, x)};
  const __m512 over = _mm512_mul_ps(x, polynomial(kTanhOver, square).raw), under = polynomial(kTanhUnder, square).raw;
  const __m512 inverse = _mm512_rcp14_ps(under), near = _mm512_mul_ps(over, inverse);
  return _mm512_fmadd_ps(_mm512_fnmadd_ps(near, under, over), inverse, near);
}

// s · unit, capped: in units of log 2. slope, unless null: its derivative, from the first reachable key on.
inline void cap_step(ScoreUnits units, const TileStep& step, float unit, float* s, float* slope) {
  const __m512 by = _mm512_set1_ps(unit), cap = _mm512_set1_ps(units.cap), rest = _mm512_set1_ps(units.cap_rest);
  const int64_t begin = (step.keys.begin - step.first) * kTileQueries,
                end = (step.keys.end - step.first) * kTileQueries;
  for (int64_t at = begin; at < end; at += 16) {
    const __m512 x = _mm512_mul_ps(_mm512_load_ps(s + at), by);
    V rise, t;
    if (slope) {
      t = tanh(V{x}, &rise);
      _mm512_store_ps(slope + at - begin, rise.raw);
    } else {
      t = V{short_tanh(x)};
    }
    _mm512_store_ps(s + at, _mm512_fmadd_ps(t.raw, cap, _mm512_mul_ps(t.raw, rest)));
  }
}

// s · unit + the bias by distance.
inline void relative_step(const Scores& scores, const QueryBlock& q, const TileStep& step, float unit, float* s) {
  const float* relative = scores.relative + q.head * scores.relative_count - scores.relative_min + q.position;
  const __m512 by = _mm512_set1_ps(unit);
  const int64_t begin = step.keys.begin, end = step.keys.end;
  for (int lane = 0; lane < kTileQueries; lane += 16) {
    float* at = s + (begin - step.first) * kTileQueries + lane;
    if (lane + 16 <= q.count) {
      for (int64_t j = begin; j < end; ++j, at += kTileQueries)
        add_bias_at(at, by, _mm512_loadu_ps(relative + lane - j));
      continue;
    }
    // Lanes past the end read the value of the last row: the array ends there.
    alignas(64) int32_t place[16];
    for (int r = 0; r < 16; ++r) place[r] = static_cast<int32_t>(smaller(lane + r, q.count - 1));
    for (int64_t j = begin; j < end; ++j, at += kTileQueries)
      add_bias_at(at, by, _mm512_i32gather_ps(_mm512_load_si512(place), relative - j, 4));
  }
}

// Products become scores; keys out of reach become -inf. Sets step.factor.
inline void score_step(const Scores& scores, const TileQueryBlock& state, const float* of_key, int64_t step_keys,
                       float* s, TileStep& step) {
  const QueryBlock& q = state.q;
  const auto drop_keys = [&](int64_t from, int64_t to) {
    for (float* at = s + from * kTileQueries; at < s + to * kTileQueries; at += 16)
      _mm512_store_ps(at, _mm512_set1_ps(kNone));
  };
  drop_keys(0, step.keys.begin - step.first);
  drop_keys(step.keys.end - step.first, step_keys);
  const ScoreUnits units = units_of(scores, q.head);
  if (masks_only(scores, q.head)) {
    step.factor = units.query;
  } else {
    step.factor = 1.0f;
    float unit = units.query;
    const bool alone = !(scores.cap > 0 || scores.relative || scores.bias);
    if (scores.similarity != Similarity::dot || alone) scale_step(scores, state, of_key, step, s), unit = 1;
    if (scores.cap > 0) cap_step(units, step, unit, s, step.room->slope), unit = 1;
    if (scores.relative) relative_step(scores, q, step, unit, s), unit = 1;
    if (scores.bias) bias_step(scores.bias, q, step, unit, s);
  }
  if (step.kind.pairs == Pairs::some) mask_step(scores, q, step, s);
}
