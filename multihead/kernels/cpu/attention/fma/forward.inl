// The fused forward pass: queries in lanes, keys in blocks, a running maximum per row.
#pragma once

#include "multihead/kernels/cpu/attention/fma/block.inl"
#include "multihead/kernels/cpu/attention/fma/rows.inl"
#include "multihead/kernels/cpu/attention/fma/scores.inl"
#include "multihead/kernels/cpu/gemm/microkernel.inl"
#include "multihead/kernels/cpu/rows/dropout.inl"
#include "multihead/kernels/cpu/transpose.inl"
#include "multihead/kernels/cpu/vector_math.inl"

// Queries that share each block of keys and values: enough to pay for widening it, few enough to keep their columns and
// outputs in half of a 1 MiB L2.
inline int64_t blocks_per_task(const Sizes& sizes) {
  const int64_t bytes = (sizes.key_width + sizes.value_width) * kMaxQueries * 4;
  return larger(1, smaller(4, 393216 / bytes));
}

// A row's maximum is raised only past this much (in units of log 2): until then exp2 stays far from overflow, and the
// outputs gathered so far need no rescaling.
constexpr float kSlack = 8;

// What one block of queries has gathered.
struct ForwardState {
  QueryBlock q;
  float* o;                                  // (Dv, width): Σ exp2(s - top) · v
  float top[kMaxQueries], sum[kMaxQueries];  // reference maximum (kNone: no key yet) and Σ exp2(s - top)
};

struct ForwardRoom {
  float* s;        // (kBlockKeys, kMaxQueries)
  float* factors;  // dropout, likewise, or null
  float *k, *v;    // (kBlockKeys, D)
  float* rows;     // (kLanes, larger of Dk, Dv)
  float* zeros;    // (larger of Dk, Dv)
  ScoreRoom scores;
};

inline ForwardRoom take_forward_room(Scratch& scratch, const Sizes& sizes, bool dropout) {
  const int64_t wide = larger(sizes.key_width, sizes.value_width) + 4;
  ForwardRoom room{take<float>(scratch, kBlockKeys * kMaxQueries),
                   dropout ? take<float>(scratch, kBlockKeys * kMaxQueries) : nullptr,
                   take<float>(scratch, kBlockKeys * sizes.key_width),
                   take<float>(scratch, kBlockKeys * sizes.value_width),
                   take<float>(scratch, kLanes * wide),
                   take<float>(scratch, wide),
                   take_score_room(scratch, false)};
  memset(room.zeros, 0, static_cast<size_t>(wide) * 4);
  return room;
}

// Raises the reference maximum of lanes whose block maximum passed it by kSlack, and shrinks what they had gathered.
template <int N>
HWY_INLINE void raise_top(ForwardState& state, int64_t value_width, const V (&block_top)[N], float unit) {
  constexpr int64_t width = N * kLanes;
  const V slack = hn::Set(f32, kSlack);
  for (int n = 0; n < N; ++n) {
    const V top = hn::LoadU(f32, state.top + n * kLanes);
    const V seen = hn::Mul(block_top[n], hn::Set(f32, unit));
    const M past = hn::Gt(seen, hn::Add(top, slack));
    if (hn::AllFalse(f32, past)) continue;
    const V raised = hn::IfThenElse(past, seen, top);
    hn::StoreU(raised, f32, state.top + n * kLanes);
    const V factor = hn::IfThenElse(past, exp2(hn::Sub(top, raised)), hn::Set(f32, 1.0f));
    float* sum = state.sum + n * kLanes;
    const V gathered = hn::LoadU(f32, sum);
    if (hn::AllTrue(f32, hn::Eq(gathered, hn::Zero(f32)))) continue;
    hn::StoreU(hn::Mul(gathered, factor), f32, sum);
    for (int64_t d = 0; d < value_width; ++d) {
      float* o = state.o + d * width + n * kLanes;
      hn::StoreU(hn::Mul(hn::LoadU(f32, o), factor), f32, o);
    }
  }
}

// s becomes exp2(unit · s - top), times the dropout factor; the sums take it without dropout.
template <int N>
HWY_INLINE void exponentiate(ForwardState& state, int64_t count, float unit, const float* factors,
                             float* HWY_RESTRICT s) {
  constexpr int64_t width = N * kLanes;
  V top[N], sum[N];
  for (int n = 0; n < N; ++n) {
    const V t = hn::LoadU(f32, state.top + n * kLanes);
    top[n] = hn::IfThenZeroElse(hn::Eq(t, hn::Set(f32, kNone)), t);
    sum[n] = hn::Zero(f32);
  }
#pragma GCC unroll 2
  for (int64_t j = 0; j < count; ++j) {
#pragma GCC unroll 4
    for (int n = 0; n < N; ++n) {
      float* at = s + j * width + n * kLanes;
      V p = exp2(hn::MulSub(hn::LoadU(f32, at), hn::Set(f32, unit), top[n]));
      sum[n] = hn::Add(sum[n], p);
      if (factors) p = hn::Mul(p, hn::LoadU(f32, factors + j * width + n * kLanes));
      hn::StoreU(p, f32, at);
    }
  }
  for (int n = 0; n < N; ++n) {
    float* at = state.sum + n * kLanes;
    hn::StoreU(hn::Add(hn::LoadU(f32, at), sum[n]), f32, at);
  }
}

// kept[j · width + lane] = 1 where the score is not -inf: remembered before exponentiate overwrites it.
template <int N>
inline void remember_kept(const float* s, int64_t count, float* kept) {
  for (int64_t at = 0; at < count * N * kLanes; at += kLanes) {
    const M dropped = hn::Eq(hn::LoadU(f32, s + at), hn::Set(f32, kNone));
    hn::StoreU(hn::IfThenZeroElse(dropped, hn::Set(f32, 1.0f)), f32, kept + at);
  }
}

// sums (width of v, lanes) += p · v pair by pair, so that a non-finite value reaches only the rows that keep its key:
// the same order as add_stairs, so the same bits.
template <int N>
inline void add_values_carefully(float* sums, Rows v, int64_t count, int64_t value_width, const float* p,
                                 const float* kept) {
  constexpr int64_t width = N * kLanes;
  for (int64_t d = 0; d < value_width; ++d) {
    for (int n = 0; n < N; ++n) {
      float* out = sums + d * width + n * kLanes;
      V o = hn::Zero(f32);
      for (int64_t j = 0; j < count; ++j) {
        const int64_t at = j * width + n * kLanes;
        const V next = hn::MulAdd(hn::Set(f32, v.data[j * v.stride + d]), hn::LoadU(f32, p + at), o);
        o = hn::IfThenElse(hn::Gt(hn::LoadU(f32, kept + at), hn::Zero(f32)), next, o);
      }
      hn::StoreU(hn::Add(hn::LoadU(f32, out), o), f32, out);
    }
  }
}

template <int N>
void forward_tile(const Scores& scores, const Sizes& sizes, ForwardState& state, KeyBlock& block, KeySpan keys,
                  TileKind kind, const ForwardRoom& room) {
  const int64_t count = keys.end - keys.begin;
  V top[N];
  for (int n = 0; n < N; ++n) top[n] = hn::Set(f32, kNone);
  const float unit = tile_scores<N>(scores, state.q, block, keys, kind, sizes.key_width, room.scores, room.s, top);

  const Rows v{block.v.data + (keys.begin - block.first) * block.v.stride, block.v.stride};
  bool careful = false;
  if (may_drop(scores, kind)) {
    if (block.finite < 0) block.finite = all_finite(block.v.data, block.v.stride, block.count, sizes.value_width);
    careful = !block.finite;
  }
  float* kept = room.scores.bias;
  if (careful) remember_kept<N>(room.s, count, kept);
  if (room.factors) dropout_factors(scores, state.q, keys, room.factors);
  raise_top<N>(state, sizes.value_width, top, unit);
  exponentiate<N>(state, count, unit, room.factors, room.s);
  if (careful) {
    add_values_carefully<N>(state.o, v, count, sizes.value_width, room.s, kept);
  } else {
    int64_t ends[N];
    meet_keys(state.q, keys, kind, ends);
    add_stairs<N>(state.o, sizes.value_width, v.data, v.stride, room.s, ends);
  }
}

// One block of queries against the keys of one block.
inline void forward_step(const Scores& scores, const Sizes& sizes, ForwardState& state, KeyBlock& block, KeySpan keys,
                         TileKind kind, const ForwardRoom& room) {
  switch (state.q.vectors) {
    case 1: return forward_tile<1>(scores, sizes, state, block, keys, kind, room);
    case 2: return forward_tile<2>(scores, sizes, state, block, keys, kind, room);
    default: return forward_tile<3>(scores, sizes, state, block, keys, kind, room);
  }
}

// lse of a row, and what its gathered output is multiplied with; the sink joins here.
struct RowEnd {
  float lse, factor;
};
// log(2^top · sum), rounded once where top is large.
inline float natural_log(float top, float sum) {
  return static_cast<float>(static_cast<double>(top) * 0.693147180559945309417 + static_cast<double>(logf(sum)));
}
inline RowEnd end_row(float top, float sum, const float* sink) {
  if (!sink) {
    if (top == kNone) return {kNone, 0};
    return {natural_log(top, sum), 1 / sum};
  }
  const float logit = *sink * kLog2E, raised = logit > top ? logit : top;
  if (raised == kNone) return {kNone, 0};
  const float shrink = top == kNone ? 0 : exp2f(top - raised);
  const float all = sum * shrink + exp2f(logit - raised);
  return {natural_log(raised, all), shrink / all};
}

inline void store_lse(const View& lse, const Sequence& s, const QueryBlock& q, int lane, float value) {
  if (!lse) return;
  static_cast<float*>(
      lse.data)[s.batch * lse.stride[0] + q.head * lse.stride[1] + (s.q_begin + q.first + lane) * lse.stride[2]] =
      value;
}

// What the outputs of the rows in vector n are multiplied with; their lse is written where it is wanted.
inline V end_rows(const AttentionForwardArgs& a, const Sequence& s, const ForwardState& state, int n) {
  const QueryBlock& q = state.q;
  const float* sink = a.scores.sink ? a.scores.sink + q.head : nullptr;
  if (!sink && !a.lse) {
    const V top = hn::LoadU(f32, state.top + n * kLanes), sum = hn::LoadU(f32, state.sum + n * kLanes);
    return hn::IfThenZeroElse(hn::Eq(top, hn::Set(f32, kNone)), hn::Div(hn::Set(f32, 1.0f), sum));
  }
  HWY_ALIGN float factor[kLanes] = {};
  for (int r = 0; r < kLanes && n * kLanes + r < q.count; ++r) {
    const int lane = n * kLanes + r;
    const RowEnd end = end_row(state.top[lane], state.sum[lane], sink);
    factor[r] = end.factor;
    store_lse(a.lse, s, q, lane, end.lse);
  }
  return hn::Load(f32, factor);
}

// Divides by the sums and writes o and lse of the block's rows.
inline void finish_queries(const AttentionForwardArgs& a, const Sequence& s, const ForwardState& state,
                           int64_t value_width, const ForwardRoom& room) {
  const QueryBlock& q = state.q;
  for (int n = 0; n < q.vectors; ++n) {
    const RowWalk to = walk(a.o, s.batch, q.head, s.q_begin + q.first + n * kLanes);
    float* rows[kLanes];
    for (int r = 0; r < kLanes; ++r) {
      const bool direct = a.o.dtype == DType::f32 && n * kLanes + r < q.count;
      rows[r] = direct ? reinterpret_cast<float*>(to.at(r)) : room.rows + r * (value_width + 4);
    }
    columns_to_rows(state.o + n * kLanes, q.width(), value_width, end_rows(a, s, state, n), rows);
    for (int r = 0; a.o.dtype != DType::f32 && r < kLanes && n * kLanes + r < q.count; ++r)
      narrow_row(a.o.dtype, rows[r], value_width, to.at(r));
  }
}

// Rows of the next block: as many as the lanes hold, shared out evenly, for a block of one vector has its tiles wait
// for their reads; but where documents end, a block ends too, or the one vector that holds both sides is a block of its
// own (Zen 4, 8 documents of 256: 1.31 times the plain cost of their pairs when blocks straddled).
inline int64_t rows_of_block(const Scores& scores, int64_t number, int64_t first, int64_t left) {
  const int64_t most = smaller(kMaxQueries, left), blocks = (left + kMaxQueries - 1) / kMaxQueries;
  const View& d = scores.q_documents;
  if (!d) return smaller(most, round_up((left + blocks - 1) / blocks, kLanes));
  const int32_t* ids = static_cast<const int32_t*>(d.data) + number * d.stride[0] + first * d.stride[1];
  int64_t same = 1;
  while (same < most && ids[same * d.stride[1]] == ids[0]) ++same;
  return same == most ? most : smaller(most, larger(kLanes, same / kLanes * kLanes));
}

// Rows [first, first + count) of a head as blocks of queries, kLanes rows or more each but for the last; returns how
// many blocks.
inline int64_t load_states(const AttentionForwardArgs& a, const Sizes& sizes, int64_t number, int64_t head,
                           int64_t first, int64_t count, Scratch& scratch, const ForwardRoom& room,
                           ForwardState* states) {
  const Sequence& s = a.sequences.data[number];
  ask_for_rows(a.q, s.batch, head, s.q_begin + first, count);
  int64_t blocks = 0;
  for (int64_t r = 0; r < count; ++blocks) {
    ForwardState& state = states[blocks];
    state.q.sequence = number;
    state.q.head = head;
    state.q.first = first + r;
    state.q.count = static_cast<int>(rows_of_block(a.scores, number, first + r, count - r));
    state.q.vectors = (state.q.count + kLanes - 1) / kLanes;
    const int64_t width = state.q.width();
    state.q.columns = take<float>(scratch, sizes.key_width * width);
    state.o = take<float>(scratch, sizes.value_width * width);
    memset(state.o, 0, static_cast<size_t>(sizes.value_width * width) * 4);
    for (int l = 0; l < width; ++l) state.top[l] = kNone, state.sum[l] = 0;
    load_queries(a.q, a.scores, s, state.q, room.rows, room.zeros);
    r += state.q.count;
  }
  return blocks;
}

// The keys [begin, end) that any of the blocks can reach.
inline KeySpan reachable(const ForwardState* states, int64_t blocks) {
  KeySpan all{INT64_MAX, 0};
  for (int64_t n = 0; n < blocks; ++n) {
    if (states[n].q.high_max < 0) continue;
    all.begin = smaller(all.begin, states[n].q.low_min);
    all.end = larger(all.end, states[n].q.high_max + 1);
  }
  return all;
}

// Streams the keys of `within` past the blocks of queries.
inline void gather(const AttentionForwardArgs& a, const Sizes& sizes, ForwardState* states, int64_t blocks,
                   KeySpan within, const ForwardRoom& room) {
  const int64_t number = states[0].q.sequence, head = states[0].q.head / sizes.group;
  const Sequence& s = a.sequences.data[number];
  const RowSource k = key_source(a.kv, a.scores, s, number, head), v = value_source(a.kv, s, number, head);
  const KeySpan all = reachable(states, blocks);
  const int64_t end = smaller(within.end, all.end);
  for (int64_t first = larger(within.begin, all.begin / kBlockKeys * kBlockKeys); first < end; first += kBlockKeys) {
    const int64_t count = smaller(kBlockKeys, end - first);
    KeyBlock block;
    for (int64_t n = 0; n < blocks; ++n) {
      KeySpan keys = reachable(states[n].q, first, count);
      const TileKind kind = classify(a.scores, states[n].q, keys, room.scores, &keys);
      if (kind.pairs == Pairs::none) continue;
      if (block.count == 0) {
        load_keys(k, a.scores, first, count, room.k, block);
        block.v = v.fetch(first, count, room.v);
      }
      forward_step(a.scores, sizes, states[n], block, keys, kind, room);
    }
  }
}
