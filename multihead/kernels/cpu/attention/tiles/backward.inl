// The backward pass on tiles, bf16: a task owns some keys of a key head and walks its queries, 128 at a time. Scores
// and dp are multiplied turned (keys down, queries across) for 64 keys × 32 queries while vectors make p and ds of the
// item before.
#pragma once

#include "multihead/kernels/cpu/attention/fma/backward.inl"
#include "multihead/kernels/cpu/attention/fma/backward_bias.inl"
#include "multihead/kernels/cpu/attention/fma/backward_tile.inl"
#include "multihead/kernels/cpu/attention/fma/block.inl"
#include "multihead/kernels/cpu/attention/fma/forward.inl"
#include "multihead/kernels/cpu/attention/fma/rows.inl"
#include "multihead/kernels/cpu/attention/fma/scores.inl"
#include "multihead/kernels/cpu/attention/tiles/bias.inl"
#include "multihead/kernels/cpu/attention/tiles/dropout.inl"
#include "multihead/kernels/cpu/attention/tiles/find.inl"
#include "multihead/kernels/cpu/attention/tiles/gradient.inl"
#include "multihead/kernels/cpu/attention/tiles/keys.inl"
#include "multihead/kernels/cpu/attention/tiles/scores.inl"
#include "multihead/kernels/cpu/attention/tiles/softmax.inl"
#include "multihead/kernels/cpu/attention/tiles/spans.inl"
#include "multihead/kernels/cpu/philox.inl"
#include "multihead/kernels/cpu/tile.inl"
#include "multihead/kernels/cpu/tile_pack.inl"
#include "multihead/kernels/cpu/vector_math.inl"

// Σ ds along both axes, for the squares of the euclidean similarity.
inline void sum_item(TileGradBlock& block, const TileStep& item, const float* ds, float scale, float* column_sum) {
  for (int64_t key = 32 * item.first_group(); key < 32 * item.end_group(); ++key) {
    const __m512 low = _mm512_load_ps(ds + key * kTileQueries), high = _mm512_load_ps(ds + key * kTileQueries + 16);
    _mm512_store_ps(block.row_sum, _mm512_add_ps(_mm512_load_ps(block.row_sum), low));
    _mm512_store_ps(block.row_sum + 16, _mm512_add_ps(_mm512_load_ps(block.row_sum + 16), high));
    column_sum[key] += scale * _mm512_reduce_add_ps(_mm512_add_ps(low, high));
  }
}

// One span of queries against the keys of a task.
template <class Tiles, int KS, int VS>
struct GradPipe {
  struct Item {
    TileStep step;
    int64_t block;
  };

  Tiles& tiles;
  const TileGradPlan& plan;
  BackwardTask& task;
  TileGradKeys& keys;
  TileGradSpan& span;
  TileGradRoom& room;
  int64_t at = 0, next_block = 0;                   // where find() goes on: keys of the task, block of the span
  int8_t blocks[kItemKeys / 32][kSpanBlocks] = {};  // of each group of 32 keys: blocks with gradients in the half span
  int64_t block_count[kItemKeys / 32] = {};
  int8_t groups[kSpanBlocks][kSpanKeys / 32] = {};  // of each block: groups of 32 keys with gradients in the span
  int64_t group_count[kSpanBlocks] = {};

  HWY_INLINE int64_t across_k() const { return KS ? KS : plan.t.across_k; }
  HWY_INLINE int64_t across_v() const { return VS ? VS : plan.t.across_v; }

  bool find(Item& item, const ScoreRoom& scores) {
    for (; at < keys.count; at += kItemKeys, next_block = 0) {
      for (; next_block < span.count; ++next_block) {
        TileStep& step = item.step;
        const QueryBlock& q = span.blocks[next_block].state.q;
        step.first = keys.first + at;
        step.keys = reachable(q, step.first, smaller(kItemKeys, keys.count - at));
        step.kind = classify_step(plan.base.a.scores, q, step.keys, scores);
        step.classified = step.keys.begin;
        step.room = &scores;
        if (step.kind.pairs == Pairs::none) continue;
        const AttentionBackwardArgs& a = plan.base.a;
        if (a.scores.bias) ask_for_bias(a.scores.bias, q, step.keys);
        if (a.dbias) ask_for_bias<true>(a.dbias, q, step.keys);
        item.block = next_block++;
        return true;
      }
    }
    return false;
  }

  // Scores and dp of an item, interleaved with what `beat` runs.
  template <class Beat>
  HWY_INLINE void multiply(const Item& item, float* s, float* dp, Beat& beat) {
    const int64_t key_tile = (item.step.first - keys.first) / 16;
    const TileGradBlock& block = span.blocks[item.block];
    const uint32_t *k = keys.k + key_tile * across_k() * kTileFloats, *v = keys.v + key_tile * across_v() * kTileFloats;
    constexpr int64_t kLower = 32 * kTileQueries;
    multiply_lanes<0, KS>(tiles, k, block.state.words, across_k(), s, beat);
    multiply_lanes<4 * KS, KS>(tiles, k + 2 * across_k() * kTileFloats, block.state.words, across_k(), s + kLower,
                               beat);
    multiply_lanes<8 * KS, VS>(tiles, v, block.d_o_words, across_v(), dp, beat);
    multiply_lanes<8 * KS + 4 * VS, VS>(tiles, v + 2 * across_v() * kTileFloats, block.d_o_words, across_v(),
                                        dp + kLower, beat);
  }

  // Only keys that rows can reach. The others' scores become -inf, their dp is not read.
  HWY_NOINLINE void multiply_alone(const Item& item, float* s, float* dp) {
    const TileGradBlock& block = span.blocks[item.block];
    const Sizes& sizes = plan.t.sizes;
    for (int64_t group = item.step.first_group(); group < item.step.end_group(); ++group) {
      const int64_t key_tile = (item.step.first - keys.first) / 16 + 2 * group, out = group * 32 * kTileQueries;
      const uint32_t *k = keys.k + key_tile * across_k() * kTileFloats,
                     *v = keys.v + key_tile * across_v() * kTileFloats;
      if constexpr (Tiles::kWholeSums) {
        sum_lanes(tiles, k, block.state.words, sizes.key_width, s + out);
        sum_lanes(tiles, v, block.d_o_words, sizes.value_width, dp + out);
      } else {
        Alone beat;
        multiply_lanes<0, KS>(tiles, k, block.state.words, across_k(), s + out, beat);
        multiply_lanes<0, VS>(tiles, v, block.d_o_words, across_v(), dp + out, beat);
      }
    }
  }

  // Products of `next`, if any, beside p and ds of `now`.
  template <bool kNext, bool kKeep, bool kDrop>
  HWY_NOINLINE void step(const Item& next, float* s_next, float* dp_next, const Item& now, const float* s,
                         const float* dp) {
    const TileGradBlock& block = span.blocks[now.block];
    using Work = GradSlices<kKeep, kDrop>;
    Work slices{_mm512_set1_ps(now.step.factor),
                {_mm512_load_ps(block.lse), _mm512_load_ps(block.lse + 16)},
                {_mm512_load_ps(block.delta), _mm512_load_ps(block.delta + 16)},
                {live_lanes(_mm512_load_ps(block.lse)), live_lanes(_mm512_load_ps(block.lse + 16))},
                s,
                dp,
                p_left(now),
                ds_left(now),
                ds_right(now),
                room.ds,
                room.kept,
                _mm512_set1_ps(dropout_scale(plan.base.a.scores.dropout_threshold))};
    int end = kItemSlices;
    if constexpr (Tiles::kWholeSums || !kNext) {
      if constexpr (kNext) multiply_alone(next, s_next, dp_next);
      slices.done = static_cast<int>(16 * now.step.first_group());
      end = static_cast<int>(16 * now.step.end_group());
    } else if constexpr (KS != 0) {
      Beside<Work, kItemSlices, 8 * (KS + VS)> beat{slices};
      multiply(next, s_next, dp_next, beat);
    } else {
      Paced<Work, kItemSlices> beat(slices, static_cast<int>(8 * (across_k() + across_v())));
      multiply(next, s_next, dp_next, beat);
    }
    for (; slices.done < end; ++slices.done) slices.slice(slices.done);
  }

  uint32_t* p_left(const Item& item) const { return room.p_left + item.block * kTileFloats; }
  uint32_t* ds_left(const Item& item) const { return room.ds_left + item.block * kTileFloats; }
  int64_t group(const Item& item) const { return (item.step.first - keys.first) % kSpanKeys / 32; }
  uint32_t* ds_right(const Item& item) const {
    return room.ds_right + (group(item) * kSpanBlocks + item.block) * kSlotWords;
  }

  bool wants_biases() const { return plan.base.a.dbias || task.relative; }
  // The gradients of the biases take the item's ds.
  void add_biases(const Item& now, const ScoreRoom& scores) {
    const AttentionBackwardArgs& a = plan.base.a;
    const QueryBlock& q = span.blocks[now.block].state.q;
    const float* ds = room.ds + (now.step.keys.begin - now.step.first) * kTileQueries;
    if (a.dbias && plan.base.writes_bias)
      write_bias_gradient(a.dbias, q, now.step.keys, ds);
    else if (a.dbias)
      add_bias_gradient(a.dbias, q, now.step.keys, ds, scores.rows);
    if (task.relative)
      add_relative_bias(q, now.step.keys, a.sequences.data[task.n].position, keys.first + keys.count - 1, ds,
                        task.relative);
  }

  // p and ds of `now` with every option.
  void weigh(const Item& now, const float* s, const float* dp, const ScoreRoom& scores) {
    const AttentionBackwardArgs& a = plan.base.a;
    TileGradBlock& block = span.blocks[now.block];
    const QueryBlock& q = block.state.q;
    const int64_t offset = now.step.first - keys.first;
    weigh_item(a.scores, block, now.step, s, dp, room);
    add_biases(now, scores);
    if (a.scores.cap > 0) {
      float* ds = room.ds + (now.step.keys.begin - now.step.first) * kTileQueries;
      const int64_t count = (now.step.keys.end - now.step.keys.begin) * kTileQueries;
      for (int64_t n = 0; n < count; n += 16)
        _mm512_storeu_ps(ds + n, times(_mm512_loadu_ps(ds + n), _mm512_loadu_ps(scores.slope + n)));
    }
    if (a.scores.similarity == Similarity::euclidean)
      sum_item(block, now.step, room.ds, a.scores.scale[q.head], keys.column_sum + offset);
    pack_item(block, now.step, room, keys.into_dq + offset, p_left(now), ds_left(now), ds_right(now));
  }

  // Rows of an item's block of d_o hold non-finite elements.
  void add_unclean(const Item& now, const float* s) {
    const AttentionBackwardArgs& a = plan.base.a;
    const QueryBlock& q = span.blocks[now.block].state.q;
    const Sequence& sequence = a.sequences.data[q.sequence];
    const TileRows d_o = tile_rows(a.d_o, sequence.batch, q.head, sequence.q_begin + q.first, q.count);
    add_non_finite_d_o(d_o, now.step, s, across_v(), keys.dv + (now.step.first - keys.first) * 32 * across_v());
  }

  // Everything of 64 keys has its p and ds: dv and dk take them.
  void finish_half(int64_t offset) {
    const AttentionBackwardArgs& a = plan.base.a;
    for (int64_t group = 0; group < kItemKeys / 32; ++group, offset += 32) {
      const int64_t at = group * 2 * kSpanBlocks * kTileFloats, count = block_count[group];
      if (count == 0) continue;
      if (a.dv)
        add_key_gradients(tiles, room.p_left + at, span.d_o_pairs, across_v(), blocks[group], count,
                          keys.dv + offset * 32 * across_v());
      if (a.dk)
        add_key_gradients(tiles, room.ds_left + at, span.q_pairs, across_k(), blocks[group], count,
                          keys.dk + offset * 32 * across_k());
      block_count[group] = 0;
    }
  }
  // Likewise 128 keys: dq takes them.
  void finish_span(int64_t offset) {
    const uint32_t* turned = keys.turned + offset * 16 * across_k();
    for (int64_t b = 0; b < span.count; ++b) {
      if (group_count[b] > 0 && wants_dq(plan.base.a))
        add_query_gradients(tiles, turned, room.ds_right, b, plan.t.sizes.key_width, groups[b], group_count[b],
                            span.blocks[b].state.o);
      group_count[b] = 0;
    }
  }

  void run() {
    Item now{}, next{};
    if (!find(now, room.scores[0])) return;
    multiply_alone(now, room.s[0], room.dp[0]);
    int parity = 0;
    for (bool has_next = true; has_next; parity ^= 1, now = next) {
      float *s = room.s[parity], *dp = room.dp[parity], *s_next = room.s[parity ^ 1], *dp_next = room.dp[parity ^ 1];
      const TileGradBlock& block = span.blocks[now.block];
      const int64_t offset = now.step.first - keys.first;
      score_step(plan.base.a.scores, block.state, keys.of_key + offset, kItemKeys, s, now.step);
      has_next = find(next, room.scores[parity ^ 1]);
      if (room.kept) keep_weights(plan.base.a.scores, block.state.q, now.step, room.kept);
      if (!plan.fast) {
        weigh(now, s, dp, room.scores[parity]);
        if (has_next) multiply_alone(next, s_next, dp_next);
      } else {
        const auto run_step = [&]<bool kKeep, bool kDrop>() {
          if (has_next)
            step<true, kKeep, kDrop>(next, s_next, dp_next, now, s, dp);
          else
            step<false, kKeep, kDrop>(next, s_next, dp_next, now, s, dp);
        };
        if (room.kept)
          run_step.template operator()<true, true>();
        else if (wants_biases())
          run_step.template operator()<true, false>();
        else
          run_step.template operator()<false, false>();
        add_biases(now, room.scores[parity]);
      }
      if (block.unclean) add_unclean(now, s);
      for (int64_t n = now.step.first_group(); n < now.step.end_group(); ++n) {
        blocks[n][block_count[n]++] = static_cast<int8_t>(now.block);
        groups[now.block][group_count[now.block]++] = static_cast<int8_t>(group(now) + n);
      }
      const int64_t following = has_next ? next.step.first - keys.first : INT64_MAX;
      if (following != offset) finish_half(offset);
      if (following / kSpanKeys != offset / kSpanKeys) finish_span(offset / kSpanKeys * kSpanKeys);
    }
  }
};
