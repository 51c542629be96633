// The vector half of the forward pass on tiles: 32 queries in lanes, scores in f32, weights in pairs of bf16.
#pragma once

#include "multihead/kernels/cpu/attention/fma/block.inl"
#include "multihead/kernels/cpu/attention/tiles/keys.inl"
#include "multihead/kernels/cpu/tile.inl"
#include "multihead/kernels/cpu/tile_pack.inl"
#include "multihead/kernels/cpu/vector_math.inl"

constexpr int kTileQueries = 32;
constexpr int64_t kScoreBytes = kTileQueries * 4;  // from one key's scores to the next's
constexpr int64_t kSlotWords = 2 * kTileFloats;    // weights of 32 keys: two tiles of 16 queries
constexpr int64_t kSlots = 4;                      // of a block of weights
constexpr int64_t kMostStepKeys = 64;

// A reference no score is below, for lanes that have kept no key yet: exp2(s - this) overflows and makes them choose
// one.
constexpr float kLowest = -3.402823466e38f;
// A sum past this makes its lane raise the reference: far from overflow, also times values up to 2^100.
constexpr float kLargestSum = 65536.0f;

// 2^f on [0, 1) to degree 5, exact at 0, relative error 8.2e-8. bf16 weights would do with degree 3, but the sum makes
// lse, and lse is f32: where scores are exact, it shows.
constexpr float kShortExp2[] = {1.0f, 0.69315130f, 0.24016444f, 0.055799913f, 0.0090170307f, 0.0018671300f};
// Weights carry this factor, the mean of what truncation to bf16 takes away (2^-8 · (1 - 1/2) / ln 2 over mantissas
// spread logarithmically): truncated ones are then without bias, and cost one instruction less each than rounded ones.
constexpr float kMeanCut = 1.0028178f;

// 2^t · by of N vectors, all at the same place of the polynomial at a time: one after the other their sums would wait
// for themselves, and fill the scheduler.
template <int N>
HWY_INLINE void short_exp2(__m512 (&t)[N], float by) {
  __m512 f[N], p[N];
#pragma GCC unroll 8
  for (int i = 0; i < N; ++i) f[i] = _mm512_reduce_ps(t[i], 1 | 8);
#pragma GCC unroll 8
  for (int i = 0; i < N; ++i)
    p[i] = _mm512_fmadd_ps(_mm512_set1_ps(kShortExp2[5] * by), f[i], _mm512_set1_ps(kShortExp2[4] * by));
#pragma GCC unroll 4
  for (int n = 3; n >= 0; --n)
#pragma GCC unroll 8
    for (int i = 0; i < N; ++i) p[i] = _mm512_fmadd_ps(p[i], f[i], _mm512_set1_ps(kShortExp2[n] * by));
#pragma GCC unroll 8
  for (int i = 0; i < N; ++i) t[i] = _mm512_scalef_ps(p[i], t[i]);
}
HWY_INLINE __m512 short_exp2(__m512 t, float by) {
  __m512 one[1] = {t};
  short_exp2(one, by);
  return one[0];
}

// Subnormal numbers are 0 while it lives: on Intel's cores each vector in which exp2 gives one takes some 150 cycles.
class FlushSubnormals {
 public:
  FlushSubnormals() : callers_(_mm_getcsr()) { _mm_setcsr(callers_ | 0x8040); }
  ~FlushSubnormals() { _mm_setcsr(callers_); }
  FlushSubnormals(const FlushSubnormals&) = delete;
  FlushSubnormals& operator=(const FlushSubnormals&) = delete;

 private:
  uint32_t callers_;
};

// One block of queries, and what it has gathered.
struct TileQueryBlock {
  QueryBlock q;
  uint32_t* words;                      // right operand, tiles[column / 32][query / 16]
  float* o;                             // tiles[column / 32][even, odd][query / 16] of Σ weights · v, columns as rows
  bool fresh;                           // nothing has been added to o yet, and it holds no zeros either
  float factor[kTileQueries];           // of each query: turns a product into units of log 2 (before a cap: over cap)
  alignas(64) float top[kTileQueries];  // reference of each query, in units of log 2
  alignas(64) float sum[kTileQueries];  // Σ kMeanCut · exp2(s - top), before truncation
};

// A step of keys on its way through the pipeline.
struct TileStep {
  int64_t first;
  KeySpan keys;  // of those, the ones that rows can reach
  TileKind kind;
  int64_t classified;  // the key that bit 0 of the dense masks stands for
  const ScoreRoom* room;
  float factor;   // turns what stands in s into units of log 2
  KeyTiles k[2];  // of the groups of 32 keys
  const uint32_t* v;
  bool unclean;  // v has non-finite elements
  TileQueryBlock* state;
  bool choose;  // the first step of its queries: it gives them their reference

  // Groups of 32 keys of the step that rows can reach.
  int64_t first_group() const { return (keys.begin - first) / 32; }
  int64_t end_group() const { return (keys.end - first + 31) / 32; }
};

// The softmax of one step in slices of two keys, to be spread between tile products.
struct Slices {
  __m512 top0, top1, sum0, sum1, factor;
  const float* s;
  uint32_t* p;
  float* kept;  // where the exponentials go before they are truncated, or null
  int done = 0;

  HWY_INLINE Slices(const TileQueryBlock& state, float by, const float* scores, uint32_t* weights, float* exponentials)
      : top0(_mm512_load_ps(state.top)),
        top1(_mm512_load_ps(state.top + 16)),
        sum0(_mm512_load_ps(state.sum)),
        sum1(_mm512_load_ps(state.sum + 16)),
        factor(_mm512_set1_ps(by)),
        s(scores),
        p(weights),
        kept(exponentials) {}

  HWY_INLINE void slice(int n) {
    const float* at = s + n * 2 * kTileQueries;
    __m512 x[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) x[i] = _mm512_fmsub_ps(_mm512_load_ps(at + 16 * i), factor, i % 2 ? top1 : top0);
    short_exp2(x, kMeanCut);
    uint32_t* to = p + n / 16 * kSlotWords + n % 16 * 16;
    _mm512_store_si512(to, truncate_pairs(x[0], x[2]));
    _mm512_store_si512(to + kTileFloats, truncate_pairs(x[1], x[3]));
    if (HWY_UNLIKELY(kept != nullptr)) {
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) _mm512_store_ps(kept + n * 2 * kTileQueries + 16 * i, x[i]);
    }
    sum0 = _mm512_add_ps(sum0, _mm512_add_ps(x[0], x[2]));
    sum1 = _mm512_add_ps(sum1, _mm512_add_ps(x[1], x[3]));
    // Without this g++ 12 keeps the terms on the stack and adds them at the end of the step.
    asm volatile("" : "+v"(sum0), "+v"(sum1));
  }

  HWY_INLINE void finish(TileQueryBlock& state, int count) {
    for (; done < count; ++done) slice(done);
    _mm512_store_ps(state.sum, sum0);
    _mm512_store_ps(state.sum + 16, sum1);
  }
};

// 32 rows of a left operand times 32 lanes, `width` deep: out (32, 32), on tiles that keep whole sums.
template <class Tiles>
HWY_NOINLINE void sum_lanes(Tiles& tiles, const uint32_t* left, const uint32_t* right, int64_t width, float* out) {
  tiles.template sum<false>(
      {out, kTileQueries, 16, 16 * kTileQueries}, (width + 1) / 2,
      [&](int64_t n, const uint32_t*& upper, const uint32_t*& lower, const uint32_t*& b) HWY_ATTR
      __attribute__((always_inline)) {
        upper = left + n * kTileFloats;
        lower = upper + tiles_across(width) * kTileFloats;
        b = right + n * kSlotWords;
      });
}

// Slices [kFrom, kTo) of a vector work, unrolled.
template <int kFrom, int kTo, class Work>
HWY_INLINE void slices_between(Work& work) {
  if constexpr (kFrom < kTo) {
    work.slice(kFrom);
    slices_between<kFrom + 1, kTo>(work);
  }
}

// after<N>(): tile product N of a step has been issued. Beside a vector work of kCount slices, where the products are
// counted at compile time, the slices that fall to it run.
struct Alone {
  template <int N>
  HWY_INLINE void after() {}
};
template <class Work, int kCount, int kProducts>
struct Beside {
  Work& slices;

  template <int N>
  HWY_INLINE void after() {
    slices_between<N * kCount / kProducts, (N + 1) * kCount / kProducts>(slices);
    slices.done = (N + 1) * kCount / kProducts;
  }
};
// Likewise where the products are counted at run time: `several` slices after each `every` products.
template <class Work, int kCount>
struct Paced {
  Work& slices;
  int every, several, waited = 0;

  HWY_INLINE Paced(Work& all, int products)
      : slices(all), every(products > kCount ? products / kCount : 1), several((kCount + products - 1) / products) {}

  template <int N>
  HWY_INLINE void after() {
    if (++waited < every) return;
    waited = 0;
    for (int n = 0; n < several && slices.done < kCount; ++n) slices.slice(slices.done++);
  }
};

// The largest score of each lane in a step.
HWY_INLINE __m512 step_top(const float* s, int64_t step_keys, float factor) {
  // Four chains: a maximum takes four cycles.
  __m512 top[4];
#pragma GCC unroll 4
  for (int n = 0; n < 4; ++n) top[n] = _mm512_set1_ps(kNone);
  for (int64_t r = 0; r < step_keys; r += 4)
#pragma GCC unroll 4
    for (int n = 0; n < 4; ++n) top[n] = _mm512_max_ps(top[n], _mm512_load_ps(s + (r + n) * kTileQueries));
  return _mm512_mul_ps(_mm512_max_ps(_mm512_max_ps(top[0], top[1]), _mm512_max_ps(top[2], top[3])),
                       _mm512_set1_ps(factor));
}

HWY_INLINE void shrink_words(uint32_t* words, __m512 by) {
  const __m512i x = _mm512_load_si512(words), upper = _mm512_set1_epi32(static_cast<int>(0xffff0000u));
  const __m512 low = _mm512_mul_ps(_mm512_castsi512_ps(_mm512_slli_epi32(x, 16)), by);
  const __m512 high = _mm512_mul_ps(_mm512_castsi512_ps(_mm512_and_si512(x, upper)), by);
  _mm512_store_si512(words, truncate_pairs(low, high));
}

// Raises the reference of 16 lanes so that the step's scores, and the sum so far, come near 1. Lanes that have gathered
// something move by whole powers of two, so that what is gathered (o, and `slots` of weights on their way) shrinks
// exactly.
inline void raise_half(TileQueryBlock& state, int half, __mmask16 lanes, __m512 highest, int64_t across_v,
                       uint32_t* weights, int64_t slots) {
  const __m512 top = _mm512_load_ps(state.top + 16 * half), sum = _mm512_load_ps(state.sum + 16 * half);
  const __mmask16 fresh = lanes & _mm512_cmp_ps_mask(sum, _mm512_setzero_ps(), _CMP_EQ_OQ);
  const __mmask16 moved = lanes & static_cast<__mmask16>(~fresh);
  __m512 by = _mm512_max_ps(_mm512_sub_ps(highest, top), _mm512_getexp_ps(sum));
  by = _mm512_max_ps(_mm512_roundscale_ps(by, 2 | 8), _mm512_setzero_ps());
  __m512 raised = _mm512_mask_add_ps(top, moved, top, by);
  raised = _mm512_mask_max_ps(raised, fresh, highest, _mm512_set1_ps(kLowest));
  _mm512_store_ps(state.top + 16 * half, raised);
  if (!moved) return;
  const __m512 one = _mm512_set1_ps(1.0f);
  const __m512 shrink = _mm512_mask_scalef_ps(one, moved, one, _mm512_sub_ps(_mm512_setzero_ps(), by));
  _mm512_store_ps(state.sum + 16 * half, _mm512_mul_ps(sum, shrink));
  for (int64_t tile = half; !state.fresh && tile < 4 * across_v; tile += 2) {
    for (int r = 0; r < 16; ++r) {
      float* o = state.o + tile * kTileFloats + 16 * r;
      _mm512_store_ps(o, _mm512_mul_ps(_mm512_load_ps(o), shrink));
    }
  }
  for (int64_t slot = 0; slot < slots; ++slot)
    for (int r = 0; r < 16; ++r) shrink_words(weights + slot * kSlotWords + half * kTileFloats + 16 * r, shrink);
}

// Adds the non-finite values of a step, zeros in its tiles, to the rows that keep their keys.
inline void add_non_finite(const TileRows& v, const TileStep& step, const float* s, float* o) {
  for (int64_t j = step.keys.begin; j < step.keys.end; ++j) {
    for (int64_t d = 0; d < v.width; ++d) {
      const uint16_t bits = v.at[j * v.stride + d];
      if ((bits & 0x7f80) != 0x7f80) continue;
      const __m512 x = _mm512_castsi512_ps(_mm512_set1_epi32(static_cast<int>(static_cast<uint32_t>(bits) << 16)));
      for (int half = 0; half < 2; ++half) {
        const __m512 score = _mm512_load_ps(s + (j - step.first) * kTileQueries + 16 * half);
        const __mmask16 kept = _mm512_cmp_ps_mask(score, _mm512_set1_ps(kNone), _CMP_NEQ_UQ);
        float* at = o + (d / 32 * 4 + d % 2 * 2 + half) * kTileFloats + d % 32 / 2 * 16;
        _mm512_store_ps(at, _mm512_mask_add_ps(_mm512_load_ps(at), kept, _mm512_load_ps(at), x));
      }
    }
  }
}
