// What the backward pass on tiles works on: the keys of a task and spans of up to 128 queries, packed as its products
// take them.
#pragma once

#include "multihead/kernels/cpu/attention/fma/backward.inl"
#include "multihead/kernels/cpu/attention/fma/backward_tasks.inl"
#include "multihead/kernels/cpu/attention/fma/block.inl"
#include "multihead/kernels/cpu/attention/fma/rows.inl"
#include "multihead/kernels/cpu/attention/order.inl"
#include "multihead/kernels/cpu/attention/tiles/forward.inl"
#include "multihead/kernels/cpu/attention/tiles/gradient.inl"
#include "multihead/kernels/cpu/attention/tiles/keys.inl"
#include "multihead/kernels/cpu/attention/tiles/softmax.inl"
#include "multihead/kernels/cpu/tile.inl"
#include "multihead/kernels/cpu/tile_pack.inl"
#include "multihead/kernels/cpu/vector_math.inl"

// Keys of a task: packed three ways, with f32 sums of dk and dv, they fill about half of a 2 MiB L2.
inline int64_t tile_backward_keys(const TileSizes& t) {
  const int64_t across = t.across_k + t.across_v;
  return across <= 8 ? 512 : across <= 16 ? 256 : 128;
}

struct TileGradPlan {
  BackwardPlan base;  // tasks, rows, delta, projection, turns of tasks
  TileSizes t;
  bool fast;          // no option but masks, biases and dropout: the vector work is interleaved
  int64_t* spans_at;  // per sequence: first span of queries (of one head)
  float* dq;          // (spans of (sequence, head)): kSpanBlocks × dq tiles, then row sums
  Turns dq_turns;     // per span of (sequence, head)

  int64_t spans(int64_t n) const { return (base.a.sequences.data[n].q_len + kSpanQueries - 1) / kSpanQueries; }
  int64_t span(int64_t n, int64_t head) const { return spans_at[n] * t.sizes.heads + head * spans(n); }
  int64_t dq_floats() const { return kSpanBlocks * 4 * t.across_k * kTileFloats; }
  int64_t span_floats() const { return dq_floats() + kSpanQueries; }
};

struct TileGradKeys {
  int64_t first, count, padded;
  uint32_t *k, *v;          // left operands, tiles[key / 16][column / 32]
  uint32_t* turned;         // left operand, keys turned: per 32 keys tiles[column / 32][even, odd]
  float *of_key, *into_dq;  // what the similarity takes of each key; what multiplies ds · k in dq
  float *dk, *dv;           // tiles[key / 16][column / 32][even, odd]
  float* column_sum;        // euclidean: Σ_i scale · ds
};

// The parts (tasks of keys) of a head that rows [first, first + count) can reach: they are neighbours, and add to dq in
// order.
struct PartRange {
  int64_t begin, end;
};
inline PartRange parts_of_rows(const TileGradPlan& plan, const TileGradBlock* blocks, int64_t count) {
  int64_t low = INT64_MAX, high = -1;
  for (int64_t n = 0; n < count; ++n) {
    const QueryBlock& q = blocks[n].state.q;
    if (q.high_max < 0) continue;
    low = smaller(low, q.low_min);
    high = larger(high, q.high_max);
  }
  if (high < 0) return {0, 1};
  const int64_t keys = plan.base.keys_per_task(blocks[0].state.q.sequence);
  return {low / keys, high / keys + 1};
}

inline TileGradKeys load_tile_keys(const TileGradPlan& plan, int64_t n, int64_t key_head, int64_t part,
                                   Scratch& scratch) {
  const AttentionBackwardArgs& a = plan.base.a;
  const TileSizes& t = plan.t;
  const Sequence& s = a.sequences.data[n];
  TileGradKeys keys{};
  keys.first = part * plan.base.keys_per_task(n);
  keys.count = smaller(plan.base.keys_per_task(n), s.k_len - keys.first);
  keys.padded = round_up(keys.count, 32);
  const TileRows k = tile_rows(a.kv.k, s.batch, key_head, s.k_begin + keys.first, keys.count);
  const TileRows v = tile_rows(a.kv.v, s.batch, key_head, s.k_begin + keys.first, keys.count);
  // Products of whole items read past them; what comes of that is dropped.
  const int64_t items = round_up(keys.count, kItemKeys);
  keys.k = take<uint32_t>(scratch, items * 16 * t.across_k);
  keys.v = take<uint32_t>(scratch, items * 16 * t.across_v);
  keys.turned = take<uint32_t>(scratch, keys.padded * 16 * t.across_k);
  pack_rows_left(k, keys.padded, keys.k);
  pack_rows_left(v, keys.padded, keys.v);
  for (int64_t at = 0; at < keys.padded; at += 32) pack_columns_left(k.from(at), keys.turned + at * 16 * t.across_k);
  keys.dk = take_zeros(scratch, keys.padded * 32 * t.across_k);
  keys.dv = take_zeros(scratch, keys.padded * 32 * t.across_v);
  keys.of_key = take<float>(scratch, keys.padded);
  keys.into_dq = take<float>(scratch, keys.padded);
  keys.column_sum = take_zeros(scratch, keys.padded);
  for (int64_t j = 0; j < keys.padded; ++j) {
    keys.of_key[j] = a.scores.similarity == Similarity::dot ? 0 : taken_of_key(a.scores.similarity, k, j);
    keys.into_dq[j] = a.scores.similarity == Similarity::cosine ? keys.of_key[j] : 1.0f;
  }
  return keys;
}

// Up to 128 queries of one head.
struct TileGradSpan {
  int64_t number, count;  // of blocks
  TileGradBlock* blocks;
  uint32_t *q_pairs, *d_o_pairs;  // right operands, tiles[block][column / 32][even, odd]
  float* dq;                      // this task's part
};

inline TileGradSpan take_span(Scratch& scratch, const TileGradPlan& plan) {
  const TileSizes& t = plan.t;
  TileGradSpan span{0,
                    0,
                    take<TileGradBlock>(scratch, kSpanBlocks),
                    take<uint32_t>(scratch, kSpanBlocks * t.across_k * kSlotWords),
                    take<uint32_t>(scratch, kSpanBlocks * t.across_v * kSlotWords),
                    take<float>(scratch, plan.dq_floats())};
  for (int64_t b = 0; b < kSpanBlocks; ++b) {
    span.blocks[b].state.words = take<uint32_t>(scratch, t.across_k * kSlotWords);
    span.blocks[b].d_o_words = take<uint32_t>(scratch, t.across_v * kSlotWords);
    span.blocks[b].state.o = span.dq + b * 4 * t.across_k * kTileFloats;
  }
  return span;
}

inline void place_span(const TileGradPlan& plan, int64_t n, int64_t head, int64_t number, TileGradSpan& span) {
  const Sequence& s = plan.base.a.sequences.data[n];
  const int64_t rows = smaller(kSpanQueries, s.q_len - number * kSpanQueries);
  span.number = number;
  span.count = (rows + kTileQueries - 1) / kTileQueries;
  for (int64_t b = 0; b < span.count; ++b) {
    QueryBlock& q = span.blocks[b].state.q;
    q.sequence = n, q.head = head, q.first = number * kSpanQueries + b * kTileQueries, q.vectors = 2;
    q.count = static_cast<int>(smaller(kTileQueries, rows - b * kTileQueries));
    limit_rows(plan.base.a.scores, s, q);
  }
}

// Asks for the rows of a span; it is not the last one, so all of them are there.
inline void ask_for_span(const TileGradPlan& plan, int64_t n, int64_t head, int64_t number) {
  const AttentionBackwardArgs& a = plan.base.a;
  const Sequence& s = a.sequences.data[n];
  ask_for_rows(a.q, s.batch, head, s.q_begin + number * kSpanQueries, kSpanQueries);
  ask_for_rows(a.d_o, s.batch, head, s.q_begin + number * kSpanQueries, kSpanQueries);
}

inline void load_span(const TileGradPlan& plan, TileGradSpan& span) {
  const AttentionBackwardArgs& a = plan.base.a;
  const TileSizes& t = plan.t;
  for (int64_t b = 0; b < span.count; ++b) {
    TileGradBlock& block = span.blocks[b];
    const QueryBlock& q = block.state.q;
    const Sequence& s = a.sequences.data[q.sequence];
    const TileRows rows = tile_rows(a.q, s.batch, q.head, s.q_begin + q.first, q.count);
    const TileRows d_o = tile_rows(a.d_o, s.batch, q.head, s.q_begin + q.first, q.count);
    load_tile_queries(a.q, a.scores, s, block.state);
    pack_lanes_right(d_o, block.d_o_words);
    pack_pairs_right(rows, span.q_pairs + b * t.across_k * kSlotWords, kSlotWords);
    block.unclean = pack_pairs_right(d_o, span.d_o_pairs + b * t.across_v * kSlotWords, kSlotWords);
    const float scale = a.scores.scale[q.head];
    for (int r = 0; r < kTileQueries; ++r) {
      const float lse = r < q.count ? row_value(a.lse, s, q.head, q.first + r) : kNone;
      block.lse[r] = lse == kNone ? __builtin_inff() : lse * kLog2E;
      block.delta[r] = r < q.count ? plan.base.delta[plan.base.row(q.sequence, q.head) + q.first + r] : 0;
      block.row_sum[r] = 0;
      block.into_dk[r] = a.scores.similarity == Similarity::euclidean ? 2 * scale : scale;
      if (a.scores.similarity == Similarity::cosine) block.into_dk[r] *= inverse_norm(square_of(rows, r));
    }
  }
  memset(span.dq, 0, static_cast<size_t>(span.count * 4 * t.across_k * kTileBytes));
}

inline TileGradRoom take_grad_room(Scratch& scratch, const TileGradPlan& plan) {
  const Scores& scores = plan.base.a.scores;
  const auto item = [&] { return take<float>(scratch, kItemKeys * kTileQueries); };
  TileGradRoom room{};
  for (int n = 0; n < 2; ++n) {
    room.s[n] = item(), room.dp[n] = item();
    room.scores[n] = take_score_room(scratch, scores.cap > 0);
  }
  room.ds = item();
  if (!plan.fast) room.p = item();
  if (scores.dropout_threshold > 0) room.kept = take<uint16_t>(scratch, kItemKeys * 2);
  room.p_left = take<uint32_t>(scratch, kItemKeys / 16 * kSpanBlocks * kTileFloats);
  room.ds_left = take<uint32_t>(scratch, kItemKeys / 16 * kSpanBlocks * kTileFloats);
  room.ds_right = take<uint32_t>(scratch, kSpanKeys / 32 * kSpanBlocks * kSlotWords);
  return room;
}
