// One tile of the backward pass: from scores to ds, and from ds to dq, dk, dv.
#pragma once

#include "multihead/kernels/cpu/attention/fma/block.inl"
#include "multihead/kernels/cpu/attention/fma/forward.inl"
#include "multihead/kernels/cpu/attention/fma/rows.inl"
#include "multihead/kernels/cpu/attention/fma/scores.inl"
#include "multihead/kernels/cpu/gemm/microkernel.inl"
#include "multihead/kernels/cpu/vector_math.inl"

// A block of queries with what its gradient needs.
struct BackwardQueries {
  QueryBlock q;
  float* d_o_columns;  // (Dv, width)
  Rows q_rows,
      d_o_rows;  // q as it multiplies ds into dk (cosine: tau · q / |q|), d_o: in place where they can be read there
  float *q_room, *d_o_room;     // else here: (width, D padded)
  float* dq;                    // (Dk, width): this task's part of Σ ds · k
  float row_sum[kMaxQueries];   // euclidean: Σ_j ds
  float lse[kMaxQueries];       // in units of log 2; +inf for lanes past the end and rows without keys: p = 0
  float lse_rest[kMaxQueries];  // what rounding lse to those units left
  float delta[kMaxQueries];
  int finite;  // of q and d_o: not looked at yet, no, yes
};

// The keys of one task: gathered gradients beside the rows.
struct BackwardKeys {
  int64_t first, count;
  Rows k, v;
  float *dk, *dv;     // (count, D padded)
  float* column_sum;  // euclidean: Σ_i ds
};

struct BackwardRoom {
  float *p, *ds, *kept;  // (kBlockKeys, kMaxQueries)
  float* factors;        // dropout, or null
  ScoreRoom scores;
};

// dp[j · width + lane] = v · d_o of the pairs that meet.
template <int N>
HWY_INLINE void product_gradients(const BackwardQueries& b, Rows v, int64_t value_width, const int64_t (&ends)[N],
                                  BiasRows<true> dbias, float* HWY_RESTRICT dp) {
  constexpr int64_t width = N * kLanes;
  for_stairs(
      ends, [&]<int First>(int64_t begin, int64_t end) HWY_ATTR __attribute__((always_inline)) {
        for_row_tiles(
            end - begin, [&]<int R>(int64_t at) HWY_ATTR __attribute__((always_inline)) {
              const int64_t first = begin + at;
              dbias.ask(kAskedRows);
              V acc[R][N];
#pragma GCC unroll 16
              for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
                for (int n = First; n < N; ++n) acc[r][n] = hn::Zero(f32);
              accumulate<First>(acc, v.data + first * v.stride, v.stride, 1, b.d_o_columns, width, value_width);
#pragma GCC unroll 16
              for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
                for (int n = First; n < N; ++n) hn::StoreU(acc[r][n], f32, dp + (first + r) * width + n * kLanes);
            });
      });
}

// p and ds of the tile out of its scores and dp, in their places: p with dropout applied, ds = p · (dp - delta); 0 for
// pairs that do not meet.
template <int N>
HWY_INLINE void probability_gradients(const BackwardQueries& b, const int64_t (&ends)[N], float unit, bool dropping,
                                      const BackwardRoom& room) {
  constexpr int64_t width = N * kLanes;
  for (int n = 0; n < N; ++n) {
    const V lse = hn::LoadU(f32, b.lse + n * kLanes), rest = hn::LoadU(f32, b.lse_rest + n * kLanes),
            delta = hn::LoadU(f32, b.delta + n * kLanes);
    // Also where the row's lse is NaN: what it drops, it does not poison.
    const M keyless = hn::Eq(lse, hn::Set(f32, -kNone));
#pragma GCC unroll 4
    for (int64_t j = 0; j < ends[n]; ++j) {
      const int64_t at = j * width + n * kLanes;
      const V s = hn::LoadU(f32, room.p + at);
      V p = exp2(hn::Sub(hn::MulSub(s, hn::Set(f32, unit), lse), rest)), dp = hn::LoadU(f32, room.ds + at);
      const M dead = hn::Or(hn::Eq(s, hn::Set(f32, kNone)), keyless);
      if (dropping) p = hn::IfThenZeroElse(dead, p);
      const V shared = p;
      if (room.factors) {
        const V factor = hn::LoadU(f32, room.factors + at);
        dp = hn::Mul(dp, factor);
        p = hn::Mul(p, factor);
      }
      V ds = hn::Mul(shared, hn::Sub(dp, delta));
      if (dropping) ds = hn::IfThenZeroElse(dead, ds);
      hn::StoreU(p, f32, room.p + at);
      hn::StoreU(ds, f32, room.ds + at);
    }
    for (int64_t j = ends[n]; j < ends[N - 1]; ++j) {
      hn::StoreU(hn::Zero(f32), f32, room.p + j * width + n * kLanes);
      hn::StoreU(hn::Zero(f32), f32, room.ds + j * width + n * kLanes);
    }
  }
}

// ds reaches q and k through the slope of the cap; a dropped pair's slope may be NaN.
template <int N>
inline void multiply_slope(int64_t count, const BackwardRoom& room) {
  for (int64_t at = 0; at < count * N * kLanes; at += kLanes) {
    const V ds = hn::LoadU(f32, room.ds + at);
    const V through = hn::Mul(ds, hn::LoadU(f32, room.scores.slope + at));
    hn::StoreU(hn::IfThenZeroElse(hn::Eq(ds, hn::Zero(f32)), through), f32, room.ds + at);
  }
}

// c[lane row or key row] += x · rows, skipping dropped pairs: the same order as add_wide_product, so the same bits.
inline void add_rows_carefully(float* c, int64_t count, const float* x, const float* kept, int64_t lanes, int64_t width,
                               Rows rows, int64_t row_width) {
  for (int64_t j = 0; j < count; ++j)
    for (int64_t d = 0; d < row_width; d += kLanes) {
      V sum = hn::Zero(f32);
      for (int64_t lane = 0; lane < lanes; ++lane) {
        if (kept[j * width + lane] == 0) continue;
        sum = hn::MulAdd(hn::Set(f32, x[j * width + lane]), hn::LoadU(f32, rows.data + lane * rows.stride + d), sum);
      }
      float* at = c + j * row_width + d;
      hn::StoreU(hn::Add(hn::LoadU(f32, at), sum), f32, at);
    }
}

template <int N>
inline void sum_gradients(BackwardQueries& b, BackwardKeys& keys, int64_t at, int64_t count, const float* ds) {
  constexpr int64_t width = N * kLanes;
  for (int n = 0; n < N; ++n) {
    float* at = b.row_sum + n * kLanes;
    V sum = hn::Zero(f32);
    for (int64_t j = 0; j < count; ++j) sum = hn::Add(sum, hn::LoadU(f32, ds + j * width + n * kLanes));
    hn::StoreU(hn::Add(hn::LoadU(f32, at), sum), f32, at);
  }
  for (int64_t j = 0; j < count; ++j) {
    V sum = hn::Zero(f32);
    for (int n = 0; n < N; ++n) sum = hn::Add(sum, hn::LoadU(f32, ds + j * width + n * kLanes));
    keys.column_sum[at + j] += hn::GetLane(hn::SumOfLanes(f32, sum));
  }
}

// tau's gradient falls out of dq.
inline bool wants_dq(const AttentionBackwardArgs& a) { return a.dq || a.dscale; }

// c[j] += Σ x[j][lane] · rows[lane] for the keys of a span, some at a time: lanes that keep none of those, nor later
// ones, are left out at the front, where they would add zeros.
inline void add_key_rows(const QueryBlock& q, KeySpan span, const float* x, Rows rows, float* c, int64_t row_width) {
  constexpr int64_t kStep = 2 * tile_rows<4>();
  int64_t lane = 0;
  for (int64_t j = span.begin; j < span.end; j += kStep) {
    while (q.high[lane] < j) ++lane;
    add_wide_product(c + (j - span.begin) * row_width, row_width, smaller(kStep, span.end - j),
                     x + (j - span.begin) * q.width() + lane, q.width(), rows.data + lane * rows.stride, rows.stride,
                     q.count - lane);
  }
}

// Everything a tile adds to dq, dk and dv.
template <int N>
HWY_INLINE void add_gradients(const AttentionBackwardArgs& a, const Sizes& sizes, BackwardQueries& b,
                              BackwardKeys& keys, KeySpan span, const int64_t (&ends)[N], bool careful,
                              const BackwardRoom& room) {
  constexpr int64_t width = N * kLanes;
  const int64_t at = span.begin - keys.first, count = span.end - span.begin;
  const int64_t key_room = round_up(sizes.key_width, kLanes), value_room = round_up(sizes.value_width, kLanes);
  const Rows k{keys.k.data + at * keys.k.stride, keys.k.stride};
  float *dk = keys.dk + at * key_room, *dv = keys.dv + at * value_room;
  if (a.scores.similarity == Similarity::euclidean) sum_gradients<N>(b, keys, at, count, room.ds);
  if (careful) {
    if (wants_dq(a)) add_values_carefully<N>(b.dq, k, count, sizes.key_width, room.ds, room.kept);
    if (a.dk) add_rows_carefully(dk, count, room.ds, room.kept, b.q.count, width, b.q_rows, key_room);
    if (a.dv) add_rows_carefully(dv, count, room.p, room.kept, b.q.count, width, b.d_o_rows, value_room);
    return;
  }
  if (wants_dq(a)) add_stairs<N>(b.dq, sizes.key_width, k.data, k.stride, room.ds, ends);
  if (a.dk) add_key_rows(b.q, span, room.ds, b.q_rows, dk, key_room);
  if (a.dv) add_key_rows(b.q, span, room.p, b.d_o_rows, dv, value_room);
}
