// The forward pass that also gives the mean of the weights over heads. A task has one block of queries and walks all
// heads: it keeps the exponentials of one head at a time, so scores are made once and the weights of a single head
// never leave the cache.
#pragma once

#include "multihead/kernels/cpu/attention/fma/block.inl"
#include "multihead/kernels/cpu/attention/fma/forward.inl"
#include "multihead/kernels/cpu/attention/fma/rows.inl"
#include "multihead/kernels/cpu/attention/fma/scores.inl"
#include "multihead/kernels/cpu/attention/mean_rows.inl"
#include "multihead/kernels/cpu/vector_math.inl"

struct MeanRoom {
  float* p;        // (keys, width): exp2(s - the maximum of its time), of the head at hand
  float* sum;      // (keys, width): Σ over heads of the weights
  float* tops;     // (blocks of keys, width): those maxima
  KeySpan* spans;  // (blocks of keys): the keys that have exponentials
};

inline MeanRoom take_mean_room(Scratch& scratch, int64_t keys, int64_t width) {
  const int64_t blocks = (keys + kBlockKeys - 1) / kBlockKeys;
  MeanRoom room{take<float>(scratch, blocks * kBlockKeys * width), take<float>(scratch, blocks * kBlockKeys * width),
                take<float>(scratch, blocks * width), take<KeySpan>(scratch, blocks)};
  memset(room.sum, 0, static_cast<size_t>(blocks * kBlockKeys * width) * 4);
  return room;
}

// As gather() streams the keys past one block of queries, with the same bits; the exponentials stay behind.
inline void gather_and_keep(const AttentionForwardArgs& a, const Sizes& sizes, ForwardState& state, ForwardRoom room,
                            const MeanRoom& kept) {
  const int64_t number = state.q.sequence, head = state.q.head / sizes.group, width = state.q.width();
  const Sequence& s = a.sequences.data[number];
  const RowSource k = key_source(a.kv, a.scores, s, number, head), v = value_source(a.kv, s, number, head);
  const int64_t end = reachable(&state, 1).end;
  for (int64_t first = 0, n = 0; first < s.k_len; first += kBlockKeys, ++n) {
    KeySpan keys = reachable(state.q, first, smaller(kBlockKeys, end - first));
    const TileKind kind = classify(a.scores, state.q, keys, room.scores, &keys);
    kept.spans[n] = kind.pairs == Pairs::none ? KeySpan{0, 0} : keys;
    if (kind.pairs == Pairs::none) continue;
    KeyBlock block;
    load_keys(k, a.scores, first, smaller(kBlockKeys, end - first), room.k, block);
    block.v = v.fetch(first, block.count, room.v);
    room.s = kept.p + keys.begin * width;
    forward_step(a.scores, sizes, state, block, keys, kind, room);
    memcpy(kept.tops + n * width, state.top, static_cast<size_t>(width) * 4);
  }
}

// sum += p · 2^(the maximum of its time - the last one) / the row's sum.
inline void add_weights(const ForwardState& state, int64_t keys, const float* sink, const MeanRoom& room) {
  const int64_t width = state.q.width();
  for (int64_t lane = 0; lane < width; lane += kLanes) {
    HWY_ALIGN float ends[kLanes];
    for (int r = 0; r < kLanes; ++r) ends[r] = end_row(state.top[lane + r], state.sum[lane + r], sink).factor;
    const V end = hn::Load(f32, ends), last = hn::LoadU(f32, state.top + lane);
    for (int64_t n = 0; n * kBlockKeys < keys; ++n) {
      const KeySpan span = room.spans[n];
      if (span.end <= span.begin) continue;
      const V top = hn::LoadU(f32, room.tops + n * width + lane);
      const V factor = hn::IfThenZeroElse(hn::Eq(top, hn::Set(f32, kNone)), hn::Mul(end, exp2(hn::Sub(top, last))));
      const float* p = room.p + lane;
      float* sum = room.sum + lane;
#pragma GCC unroll 4
      for (int64_t j = span.begin; j < span.end; ++j)
        hn::StoreU(hn::MulAdd(hn::LoadU(f32, p + j * width), factor, hn::LoadU(f32, sum + j * width)), f32,
                   sum + j * width);
    }
  }
}

// Rows [first, first + count) of all heads: one block of queries.
inline void mean_rows(const AttentionMeanArgs& m, const Sizes& sizes, int64_t n, int64_t first, int64_t count) {
  const AttentionForwardArgs& a = m.call;
  const Sequence& s = a.sequences.data[n];
  Scratch scratch;
  const ForwardRoom room = take_forward_room(scratch, sizes, false);
  const int64_t width = round_up(count, kLanes);
  const MeanRoom kept = take_mean_room(scratch, s.k_len, width);
  for (int64_t head = 0; head < sizes.heads; ++head) {
    Scratch of_head;
    ForwardState state;
    load_states(a, sizes, n, head, first, count, of_head, room, &state);
    gather_and_keep(a, sizes, state, room, kept);
    add_weights(state, s.k_len, a.scores.sink ? a.scores.sink + head : nullptr, kept);
    finish_queries(a, s, state, sizes.value_width, room);
  }
  write_mean(m, {n, first, count}, width, kept.sum);
}

void attention_mean(const AttentionMeanArgs& m, Queue&) {
  const Sizes sizes = sizes_of(m.call.q, m.call.kv);
  const int64_t Tq = m.mean.size[1], blocks = (Tq + kMaxQueries - 1) / kMaxQueries;
  parallel_for(m.call.sequences.count * blocks, [&](int64_t task) {
    // Rows from the end: under a causal mask the long ones start first.
    const int64_t n = task / blocks, begin = (blocks - 1 - task % blocks) * kMaxQueries,
                  end = smaller(begin + kMaxQueries, Tq);
    const Sequence& s = m.call.sequences.data[n];
    clear_mean(m, n, begin, end);
    for (int64_t row = begin; row < smaller(end, s.q_len);) {
      const int64_t count = rows_of_block(m.call.scores, n, row, smaller(end, s.q_len) - row);
      mean_rows(m, sizes, n, row, count);
      row += count;
    }
  });
}
