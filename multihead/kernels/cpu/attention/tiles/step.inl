// The forward pipeline on tiles, over the steps of one block of queries after the other: while the scores of one step
// of keys are multiplied on tiles, the softmax of the step before runs on vectors, slice by slice between the products,
// and the weights of the block before that meet their values. Interleaving is worth 1.2 … 1.4 × where tiles are a unit
// of their own (Sapphire Rapids); tiles that keep whole sums multiply first.
#pragma once

#include "multihead/kernels/cpu/attention/fma/block.inl"
#include "multihead/kernels/cpu/attention/fma/forward.inl"
#include "multihead/kernels/cpu/attention/tiles/keys.inl"
#include "multihead/kernels/cpu/attention/tiles/softmax.inl"
#include "multihead/kernels/cpu/tile.inl"
#include "multihead/kernels/cpu/tile_pack.inl"
#include "multihead/kernels/cpu/vector_math.inl"

// Exponentials that outlive their step: those of one block of queries and one head.
struct KeptWeights {
  struct Step {
    int64_t first, count;
    alignas(64) float top[kTileQueries];  // the references of its time
  };
  float* p;     // (keys rounded up to kMostStepKeys, 32) kMeanCut · exp2(s - the reference)
  Step* steps;  // (as many as keys have)
  int64_t count = 0;

  float* of(const TileStep& step) const { return p + step.first * kTileQueries; }
  void keep(const TileStep& step, int64_t step_keys) {
    Step& to = steps[count++];
    to.first = step.first, to.count = step_keys;
    memcpy(to.top, step.state->top, sizeof to.top);
  }
};

struct TileRoom {
  float* s[2];     // (kMostStepKeys, 32) scores
  uint32_t* p[2];  // kSlots × kSlotWords weights
  ScoreRoom scores[2];
  KeptWeights* kept = nullptr;  // where the exponentials of each step go, if anywhere
};

// Weights that wait for their values: units of 32 columns, `units` of them from `unit` on. fresh: the first of their
// queries.
struct ValueWork {
  const uint32_t* p = nullptr;
  float* o = nullptr;
  const uint32_t* v[kSlots] = {};
  int64_t slots = 0, unit = 0, units = 0;
  bool fresh = false;
};

// KS, VS: 32-wide parts of a key and a value, 0 where only known at run time. NC: groups of 32 keys of a step, chosen
// so that the steps of a block of weights are as many as its units of values.
template <class Tiles, int KS, int VS, int NC>
struct ForwardPipe {
  static constexpr int64_t kStepKeys = 32 * NC;
  static constexpr int kSlices = 16 * NC;

  Tiles& tiles;
  const TileSizes& sizes;
  TileRoom& room;

  HWY_INLINE int64_t across_k() const { return KS ? KS : sizes.across_k; }
  HWY_INLINE int64_t across_v() const { return VS ? VS : sizes.across_v; }
  int64_t units_a_step() const { return (across_v() * NC + kSlots - 1) / kSlots; }

  // Stores the tile's finished scores of 32 keys at `before`, if there are any.
  template <int T>
  HWY_INLINE void put_scores(float* before) {
    if (before) tiles.template store<T>(before + (T / 2) * 16 * kTileQueries + T % 2 * 16, kScoreBytes);
  }

  // Part c of the width of the scores of 32 keys; `before`: scores that still stand in the four tiles.
  template <int N, bool kFirst, class Beat>
  HWY_INLINE void multiply_part(const KeyTiles& k, const uint32_t* words, int64_t c, float* before, Beat& beat) {
    const uint32_t* q = words + 2 * c * kTileFloats;
    tiles.template stream<4>(k.at + c * k.beside, k.row);
    tiles.template load<6>(q);
    if constexpr (kFirst) put_scores<0>(before), tiles.template zero<0>();
    tiles.template dot<0, 4, 6>();
    beat.template after<N>();
    tiles.template load<7>(q + kTileFloats);
    if constexpr (kFirst) put_scores<1>(before), tiles.template zero<1>();
    tiles.template dot<1, 4, 7>();
    beat.template after<N + 1>();
    tiles.template stream<5>(k.at + k.below + c * k.beside, k.row);
    if constexpr (kFirst) put_scores<2>(before), tiles.template zero<2>();
    tiles.template dot<2, 5, 6>();
    beat.template after<N + 2>();
    if constexpr (kFirst) put_scores<3>(before), tiles.template zero<3>();
    tiles.template dot<3, 5, 7>();
    beat.template after<N + 3>();
  }

  template <int N, class Beat>
  HWY_INLINE void multiply_group(const KeyTiles& k, const uint32_t* words, float* before, Beat& beat) {
    static_assert(KS <= 4);
    multiply_part<N, true>(k, words, 0, before, beat);
    if constexpr (KS >= 2) multiply_part<N + 4, false>(k, words, 1, nullptr, beat);
    if constexpr (KS >= 3) multiply_part<N + 8, false>(k, words, 2, nullptr, beat);
    if constexpr (KS >= 4) multiply_part<N + 12, false>(k, words, 3, nullptr, beat);
    if constexpr (KS == 0)
      for (int64_t c = 1; c < sizes.across_k; ++c) multiply_part<0, false>(k, words, c, nullptr, beat);
  }

  template <int T>
  HWY_INLINE void open_sum(const float* o, bool fresh) {
    if (fresh)
      tiles.template zero<T>();
    else
      tiles.template load<T>(o);
  }

  // o += v · weights for one slot of a unit; the first loads o, unless it is fresh, putting away `before`.
  template <int N, bool kFirst, class Beat>
  HWY_INLINE void multiply_slot(const uint32_t* v, const uint32_t* p, float* o, bool fresh, float* before, Beat& beat) {
    tiles.template stream<4>(v);
    tiles.template load<6>(p);
    if constexpr (kFirst) put_scores<0>(before), open_sum<0>(o, fresh);
    tiles.template dot<0, 4, 6>();
    beat.template after<N>();
    tiles.template load<7>(p + kTileFloats);
    if constexpr (kFirst) put_scores<1>(before), open_sum<1>(o + kTileFloats, fresh);
    tiles.template dot<1, 4, 7>();
    beat.template after<N + 1>();
    tiles.template stream<5>(v + kTileFloats);
    if constexpr (kFirst) put_scores<2>(before), open_sum<2>(o + 2 * kTileFloats, fresh);
    tiles.template dot<2, 5, 6>();
    beat.template after<N + 2>();
    if constexpr (kFirst) put_scores<3>(before), open_sum<3>(o + 3 * kTileFloats, fresh);
    tiles.template dot<3, 5, 7>();
    beat.template after<N + 3>();
  }

  template <int N, bool kWhole, class Beat>
  HWY_INLINE void multiply_values(const ValueWork& work, int64_t unit, float* before, Beat& beat) {
    float* o = work.o + unit * 4 * kTileFloats;
    const int64_t at = unit * 2 * kTileFloats;
    multiply_slot<N, true>(work.v[0] + at, work.p, o, work.fresh, before, beat);
    if constexpr (kWhole) {
      multiply_slot<N + 4, false>(work.v[1] + at, work.p + kSlotWords, o, false, nullptr, beat);
      multiply_slot<N + 8, false>(work.v[2] + at, work.p + 2 * kSlotWords, o, false, nullptr, beat);
      multiply_slot<N + 12, false>(work.v[3] + at, work.p + 3 * kSlotWords, o, false, nullptr, beat);
    } else {
      for (int64_t n = 1; n < work.slots; ++n)
        multiply_slot<N, false>(work.v[n] + at, work.p + n * kSlotWords, o, false, nullptr, beat);
    }
    tiles.template store<0>(o);
    tiles.template store<1>(o + kTileFloats);
    tiles.template store<2>(o + 2 * kTileFloats);
    tiles.template store<3>(o + 3 * kTileFloats);
  }

  // As multiply, on tiles that keep whole sums.
  template <bool kScores, bool kValues>
  HWY_INLINE void multiply_whole(const TileStep& next, float* s_next, const ValueWork& work) {
    if constexpr (kScores) {
      for (int64_t group = 0; group < NC; ++group)
        sum_lanes(tiles, reinterpret_cast<const uint32_t*>(next.k[group].at), next.state->words, sizes.sizes.key_width,
                  s_next + group * 32 * kTileQueries);
    }
    if constexpr (kValues) {
      for (int64_t unit = work.unit; unit < work.unit + work.units; ++unit) sum_values(work, unit);
    }
  }
  HWY_NOINLINE void sum_values(const ValueWork& work, int64_t unit) {
    const TileBlock o{work.o + unit * 4 * kTileFloats, 16, kTileFloats, 2 * kTileFloats,
                      rows_of_unit(sizes.sizes.value_width, unit)};
    const auto operands = [&](int64_t n, const uint32_t*& upper, const uint32_t*& lower, const uint32_t*& right)
        HWY_ATTR __attribute__((always_inline)) {
      upper = work.v[n] + unit * 2 * kTileFloats;
      lower = upper + kTileFloats;
      right = work.p + n * kSlotWords;
    };
    if (work.fresh)
      tiles.template sum<false>(o, 16 * work.slots, operands);
    else
      tiles.template sum<true>(o, 16 * work.slots, operands);
  }

  // Scores of `next`, then values of `work`, which beside a softmax is always a whole block.
  template <bool kScores, bool kValues, bool kWhole, class Beat>
  HWY_INLINE void multiply(const TileStep& next, float* s_next, const ValueWork& work, Beat& beat) {
    float* last = kScores ? s_next + (NC - 1) * 32 * kTileQueries : nullptr;
    if constexpr (kScores) {
      multiply_group<0>(next.k[0], next.state->words, nullptr, beat);
      if constexpr (NC == 2) multiply_group<4 * KS>(next.k[1], next.state->words, s_next, beat);
    }
    if constexpr (kValues) {
      multiply_values<kScores ? 4 * KS * NC : 0, kWhole>(work, work.unit, last, beat);
      if constexpr (KS == 0)
        for (int64_t n = 1; n < work.units; ++n) multiply_values<0, kWhole>(work, work.unit + n, nullptr, beat);
    } else if constexpr (kScores) {
      put_scores<0>(last), put_scores<1>(last), put_scores<2>(last), put_scores<3>(last);
    }
  }

  // The softmax of `now` from s_now into p, beside any of: the scores of `next` into s_next, the values of `work`.
  template <bool kScores, bool kValues>
  HWY_NOINLINE void step(const TileStep& next, float* s_next, const TileStep& now, const float* s_now, uint32_t* p,
                         const ValueWork& work) {
    Slices slices(*now.state, now.factor, s_now, p, room.kept ? room.kept->of(now) : nullptr);
    if constexpr (!kScores && !kValues) {
    } else if constexpr (Tiles::kWholeSums) {
      multiply_whole<kScores, kValues>(next, s_next, work);
    } else if constexpr (KS == 0) {
      const int64_t products = (kScores ? 4 * NC * across_k() : 0) + (kValues ? 16 * work.units : 0);
      Paced<Slices, kSlices> beat(slices, static_cast<int>(products));
      multiply<kScores, kValues, true>(next, s_next, work, beat);
    } else {
      Beside<Slices, kSlices, (kScores ? 4 * NC * KS : 0) + (kValues ? 16 : 0)> beat{slices};
      multiply<kScores, kValues, true>(next, s_next, work, beat);
    }
    slices.finish(*now.state, kSlices);
  }

  HWY_NOINLINE void first_scores(const TileStep& next, float* s) {
    if constexpr (Tiles::kWholeSums) {
      multiply_whole<true, false>(next, s, {});
    } else {
      Alone beat;
      multiply<true, false, false>(next, s, {}, beat);
    }
  }

  // All units of `work` that are left.
  HWY_NOINLINE void drain(ValueWork& work) {
    for (; work.unit < work.units; ++work.unit) {
      if constexpr (Tiles::kWholeSums) {
        sum_values(work, work.unit);
      } else {
        Alone beat;
        multiply_values<0, false>(work, work.unit, nullptr, beat);
      }
    }
  }

  // Does lanes' sums past kLargestSum again with a higher reference.
  HWY_NOINLINE void raise(const TileStep& now, const float* s, const float (&before)[kTileQueries],
                          const __mmask16 (&lanes)[2], ValueWork& waiting, uint32_t* block, int64_t slots) {
    drain(waiting);
    TileQueryBlock& state = *now.state;
    for (int half = 0; half < 2; ++half) {
      _mm512_store_ps(state.sum + 16 * half, _mm512_loadu_ps(before + 16 * half));
      if (!lanes[half]) continue;
      raise_half(state, half, lanes[half], step_top(s + 16 * half, kStepKeys, now.factor), across_v(), block, slots);
    }
  }

  // A lane's first reference: the largest score of the first step that reaches it.
  void choose_reference(const TileStep& now, const float* s) {
    TileQueryBlock& state = *now.state;
    for (int half = 0; half < 2; ++half) {
      const __m512 highest = step_top(s + 16 * half, kStepKeys, now.factor);
      const __m512 top = _mm512_load_ps(state.top + 16 * half);
      const __mmask16 lanes = _mm512_cmp_ps_mask(highest, _mm512_add_ps(top, _mm512_set1_ps(kSlack)), _CMP_GT_OQ);
      if (lanes) raise_half(state, half, lanes, highest, across_v(), nullptr, 0);
    }
  }

  // Runs the softmax of `now` with whatever else there is to do beside it.
  void advance(bool has_next, const TileStep& next, float* s_next, const TileStep& now, const float* s_now, uint32_t* p,
               ValueWork& waiting) {
    ValueWork work = waiting;
    const int64_t left = waiting.units - waiting.unit;
    work.units = smaller(left, units_a_step());
    waiting.unit += work.units;
    if (has_next) {
      if (left > 0)
        step<true, true>(next, s_next, now, s_now, p, work);
      else
        step<true, false>(next, s_next, now, s_now, p, work);
    } else {
      if (left > 0)
        step<false, true>(next, s_next, now, s_now, p, work);
      else
        step<false, false>(next, s_next, now, s_now, p, work);
    }
  }

  // The weights that `filling` holds are all that a block of its queries waits for: they are the next to meet their
  // values. Beside a softmax only whole ones do.
  void hand_over(TileQueryBlock& state, ValueWork& filling, ValueWork& waiting, int& block) {
    drain(waiting);
    waiting = filling;
    waiting.o = state.o;
    waiting.units = across_v();
    waiting.fresh = state.fresh;
    state.fresh = false;
    if (!Tiles::kWholeSums && waiting.slots < kSlots) drain(waiting);
    block ^= 1;
    filling = {.p = room.p[block]};
  }

  // Streams the steps that find() gives past their queries. find(step): the next step that keeps a pair, or false;
  // score(step, s): makes scores of its products; after(step, s, p): what follows its softmax.
  template <class Find, class Score, class After>
  void run(Find find, Score score, After after) {
    TileStep now{}, next{};
    if (!find(now)) return;
    first_scores(now, room.s[0]);
    ValueWork waiting{}, filling{.p = room.p[0]};
    int parity = 0, block = 0;
    for (bool has_next = true; has_next; parity ^= 1) {
      float *s = room.s[parity], *s_next = room.s[parity ^ 1];
      score(now, s);
      if (now.choose) choose_reference(now, s);
      has_next = find(next);
      TileQueryBlock& state = *now.state;
      uint32_t* p = room.p[block] + filling.slots * kSlotWords;
      alignas(64) float before[kTileQueries];
      memcpy(before, state.sum, sizeof before);
      advance(has_next, next, s_next, now, s, p, waiting);

      const __m512 largest = _mm512_set1_ps(kLargestSum);
      const __mmask16 lanes[2] = {_mm512_cmp_ps_mask(_mm512_load_ps(state.sum), largest, _CMP_GT_OQ),
                                  _mm512_cmp_ps_mask(_mm512_load_ps(state.sum + 16), largest, _CMP_GT_OQ)};
      if (HWY_UNLIKELY(lanes[0] | lanes[1])) {
        raise(now, s, before, lanes, waiting, room.p[block], filling.slots);
        step<false, false>(next, nullptr, now, s, p, {});
      }
      after(now, s, p);
      for (int group = 0; group < NC; ++group)
        filling.v[filling.slots++] = now.v + group * 2 * across_v() * kTileFloats;
      if (filling.slots == kSlots || !has_next || next.state != now.state) hand_over(state, filling, waiting, block);
      now = next;
    }
    drain(waiting);
  }
};
