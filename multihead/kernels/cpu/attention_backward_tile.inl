// One tile of the backward pass: from scores to ds, and from ds to dq, dk, dv.

// A block of queries with what its gradient needs.
struct BackwardQueries {
  QueryBlock q;
  float* d_o_columns;   // (Dv, width)
  float* q_rows;        // (width, Dk padded): q as it multiplies ds into dk; cosine: tau · q / |q|
  float* d_o_rows;      // (width, Dv padded)
  float* dq;            // (Dk, width): this task's part of Σ ds · k
  float row_sum[kMaxQueries];  // euclidean: Σ_j ds
  float lse[kMaxQueries];      // in units of log 2; +inf for lanes past the end and rows without keys: p = 0
  float lse_rest[kMaxQueries]; // what rounding lse to those units left
  float delta[kMaxQueries];
  int finite;           // of q and d_o: not looked at yet, no, yes
};

// The keys of one task: gathered gradients beside the rows.
struct BackwardKeys {
  int64_t first, count;
  Rows k, v;
  float *dk, *dv;    // (count, D padded)
  float* column_sum;  // euclidean: Σ_i ds
};

struct BackwardRoom {
  float *p, *ds, *kept;  // (kBlockKeys, kMaxQueries)
  float* factors;        // dropout, or null
  ScoreRoom scores;
};

// p and ds of the tile out of its scores: p overwrites s (with dropout applied), ds = p · (dp - delta).
template <int N>
HWY_INLINE void probability_gradients(const BackwardQueries& b, const float* v, int64_t v_stride, int64_t value_width, int64_t count,
                                      float unit, bool dropping, BiasRows<true> dbias, const BackwardRoom& room) {
  constexpr int64_t width = N * kLanes;
  for_row_tiles(count, [&]<int R>(int64_t first) HWY_ATTR __attribute__((always_inline)) {
    dbias.ask(kAskedRows);
    V acc[R][N];
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
      for (int n = 0; n < N; ++n) acc[r][n] = hn::Zero(f32);
    accumulate(acc, v + first * v_stride, v_stride, 1, b.d_o_columns, width, value_width);
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
      for (int n = 0; n < N; ++n) {
        const int64_t at = (first + r) * width + n * kLanes;
        const V s = hn::LoadU(f32, room.p + at), lse = hn::LoadU(f32, b.lse + n * kLanes);
        V p = exp2(hn::Sub(hn::MulSub(s, hn::Set(f32, unit), lse), hn::LoadU(f32, b.lse_rest + n * kLanes)));
        M dead;
        if (dropping) {
          // Also where the row's lse is NaN: what it drops, it does not poison.
          dead = hn::Or(hn::Eq(s, hn::Set(f32, kNone)), hn::Eq(lse, hn::Set(f32, -kNone)));
          p = hn::IfThenZeroElse(dead, p);
        }
        V dp = acc[r][n], shared = p;
        if (room.factors) {
          const V factor = hn::LoadU(f32, room.factors + at);
          dp = hn::Mul(dp, factor);
          p = hn::Mul(p, factor);
        }
        V ds = hn::Mul(shared, hn::Sub(dp, hn::LoadU(f32, b.delta + n * kLanes)));
        if (dropping) ds = hn::IfThenZeroElse(dead, ds);
        hn::StoreU(p, f32, room.p + at);
        hn::StoreU(ds, f32, room.ds + at);
      }
  });
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
                               const float* rows, int64_t row_width) {
  for (int64_t j = 0; j < count; ++j)
    for (int64_t d = 0; d < row_width; d += kLanes) {
      V sum = hn::Zero(f32);
      for (int64_t lane = 0; lane < lanes; ++lane) {
        if (kept[j * width + lane] == 0) continue;
        sum = hn::MulAdd(hn::Set(f32, x[j * width + lane]), hn::LoadU(f32, rows + lane * row_width + d), sum);
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

// Everything a tile adds to dq, dk and dv.
template <int N>
HWY_INLINE void add_gradients(const AttentionBackwardArgs& a, const Sizes& sizes, BackwardQueries& b, BackwardKeys& keys, KeySpan span,
                              bool careful, const BackwardRoom& room) {
  constexpr int64_t width = N * kLanes;
  const int64_t at = span.begin - keys.first, count = span.end - span.begin;
  const int64_t key_room = round_up(sizes.key_width, kLanes), value_room = round_up(sizes.value_width, kLanes);
  const Rows k{keys.k.data + at * keys.k.stride, keys.k.stride};
  float *dk = keys.dk + at * key_room, *dv = keys.dv + at * value_room;
  if (a.scores.similarity == Similarity::euclidean)
    sum_gradients<N>(b, keys, at, count, room.ds);
  if (careful) {
    if (wants_dq(a)) add_values_carefully<N>(b.dq, k, count, sizes.key_width, room.ds, room.kept);
    if (a.dk) add_rows_carefully(dk, count, room.ds, room.kept, b.q.count, width, b.q_rows, key_room);
    if (a.dv) add_rows_carefully(dv, count, room.p, room.kept, b.q.count, width, b.d_o_rows, value_room);
    return;
  }
  if (wants_dq(a)) add_product<N>(b.dq, sizes.key_width, k.data, 1, k.stride, room.ds, width, count);
  if (a.dk) add_wide_product(dk, count, room.ds, width, 1, b.q_rows, key_room, b.q.count);
  if (a.dv) add_wide_product(dv, count, room.p, width, 1, b.d_o_rows, value_room, b.q.count);
}
