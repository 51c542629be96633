// Scores of a tile, in units of log 2: the product, then everything the options put between it and the softmax.
#pragma once

#include "multihead/kernels/cpu/attention/fma/block.inl"
#include "multihead/kernels/cpu/attention/fma/rows.inl"
#include "multihead/kernels/cpu/gemm/microkernel.inl"
#include "multihead/kernels/cpu/transpose.inl"
#include "multihead/kernels/cpu/vector_math.inl"

// How many keys of a tile each vector of queries meets: under a causal mask the first ones meet fewer (Zen 4, 8 heads,
// T 128, width 64: 1.19 times as fast as with all of them).
template <int N>
HWY_INLINE void meet_keys(const QueryBlock& q, KeySpan keys, TileKind kind, int64_t (&ends)[N]) {
  const int64_t count = keys.end - keys.begin;
  for (int n = 0; n < N; ++n) {
    ends[n] = count;
    if (kind.banded && n + 1 < N) ends[n] = smaller(count, round_up(larger(0, q.reach[n] - keys.begin), kTileRows));
  }
}

// The rows of a bias lie far apart, where no prefetcher follows: they are asked for beside the product that gives them
// time to come, some before each of its tiles (Zen 4, 1024 keys, width 64: 3 of 100 of a forward pass less than with
// all at once).
template <bool kWrite = false>
struct BiasRows {
  const char* row = nullptr;
  int64_t step = 0, bytes = 0, left = 0;

  BiasRows(const View& bias, const QueryBlock& q, KeySpan keys) {
    if (!bias || bias.stride[3] != 1) return;
    const int64_t size = size_of(bias.dtype);
    row = static_cast<const char*>(bias.data) +
          (q.sequence * bias.stride[0] + q.head * bias.stride[1] + q.first * bias.stride[2] + keys.begin) * size;
    step = bias.stride[2] * size;
    bytes = (keys.end - keys.begin) * size;
    left = bias.stride[2] == 0 ? 1 : q.count;
  }
  HWY_INLINE void ask(int64_t rows) {
    for (; rows > 0 && left > 0; --rows, --left, row += step) ask_for<kWrite>(row, bytes);
  }
};
// Of 8 tiles of a product of 64 keys, all but the last ask for all rows.
constexpr int64_t kAskedRows = (kMaxQueries + 6) / 7;
template <bool kWrite = false>
HWY_INLINE void ask_for_bias(const View& bias, const QueryBlock& q, KeySpan keys) {
  BiasRows<kWrite>(bias, q, keys).ask(kMaxQueries);
}

// s[(j - begin) · width + lane] = k · q (+ the euclidean squares) of the pairs that meet; `top` gathers the largest of
// each lane.
template <int N>
HWY_INLINE void product_scores(const QueryBlock& q, const KeyBlock& block, KeySpan keys, const int64_t (&ends)[N],
                               int64_t key_width, bool euclidean, BiasRows<> bias, float* HWY_RESTRICT s, V (&top)[N]) {
  constexpr int64_t width = N * kLanes;
  const float* k = block.k.data + (keys.begin - block.first) * block.k.stride;
  for_stairs(
      ends, [&]<int First>(int64_t begin, int64_t end) HWY_ATTR __attribute__((always_inline)) {
        for_row_tiles(
            end - begin, [&]<int R>(int64_t at) HWY_ATTR __attribute__((always_inline)) {
              const int64_t first = begin + at;
              bias.ask(kAskedRows);
              V acc[R][N];
#pragma GCC unroll 16
              for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
                for (int n = First; n < N; ++n) acc[r][n] = hn::Zero(f32);
              accumulate<First>(acc, k + first * block.k.stride, block.k.stride, 1, q.columns, width, key_width);
              if (euclidean) {
                for (int r = 0; r < R; ++r) {
                  const V of_key = hn::Set(f32, -block.offset[keys.begin - block.first + first + r]);
                  for (int n = First; n < N; ++n)
                    acc[r][n] = hn::Add(hn::Add(acc[r][n], hn::LoadU(f32, q.offset + n * kLanes)), of_key);
                }
              }
#pragma GCC unroll 16
              for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
                for (int n = First; n < N; ++n) {
                  top[n] = hn::Max(top[n], acc[r][n]);
                  hn::StoreU(acc[r][n], f32, s + (first + r) * width + n * kLanes);
                }
            });
      });
}

// The dense bias of a tile as (keys, width), natural units.
inline void load_bias(const View& bias, const QueryBlock& q, KeySpan keys, const ScoreRoom& room) {
  const int64_t count = keys.end - keys.begin, bytes = size_of(bias.dtype);
  for (int n = 0; n < q.vectors; ++n) {
    const float* rows[kLanes];
    for (int r = 0; r < kLanes; ++r) {
      const int64_t lane = smaller(n * kLanes + r, q.count - 1);
      const char* row =
          static_cast<const char*>(bias.data) + (q.sequence * bias.stride[0] + q.head * bias.stride[1] +
                                                 (q.first + lane) * bias.stride[2] + keys.begin * bias.stride[3]) *
                                                    bytes;
      float* to = room.rows + r * kBlockKeys;
      rows[r] = to;
      // Copied even where it is f32: rows a multiple of 4 KiB apart would chase each other out of the first cache.
      if (bias.stride[3] == 1)
        widen_row(bias.dtype, row, count, 1.0f, to);
      else
        for (int64_t j = 0; j < count; ++j) widen_row(bias.dtype, row + j * bias.stride[3] * bytes, 1, 1.0f, to + j);
    }
    rows_to_columns(rows, count, hn::Set(f32, 1.0f), room.bias + n * kLanes, q.width());
  }
}

// A bias of -inf drops the pair whatever its score is.
HWY_INLINE V add_bias(V score, V bias) {
  const V none = hn::Set(f32, kNone);
  return hn::IfThenElse(hn::Eq(bias, none), none, hn::MulAdd(bias, hn::Set(f32, kLog2E), score));
}

// Multiplies s by `unit`, then applies cap, biases and masks, in place; dropped pairs become -inf, whatever stands
// there: pairs that do not meet have no product. `top` is gathered anew.
template <int N>
HWY_INLINE void apply_scores(const Scores& scores, const QueryBlock& q, KeySpan keys, TileKind kind,
                             const ScoreRoom& room, float* HWY_RESTRICT s, V (&top)[N], float unit = 1) {
  constexpr int64_t width = N * kLanes;
  const hn::ScalableTag<uint32_t> u32;
  const V none = hn::Set(f32, kNone);
  const ScoreUnits units = units_of(scores, q.head);
  const float* relative =
      scores.relative ? scores.relative + q.head * scores.relative_count - scores.relative_min : nullptr;
  const int32_t* documents = nullptr;
  int64_t document_step = 0;
  if (kind.documents) {
    documents = static_cast<const int32_t*>(scores.k_documents.data) + q.sequence * scores.k_documents.stride[0];
    document_step = scores.k_documents.stride[1];
  }
  if (scores.bias) load_bias(scores.bias, q, keys, room);

  for (int n = 0; n < N; ++n) top[n] = none;
  for (int64_t j = keys.begin; j < keys.end; ++j) {
    const int64_t row = j - keys.begin;
#pragma GCC unroll 4
    for (int n = 0; n < N; ++n) {
      const int lane = n * kLanes;
      float* at = s + row * width + lane;
      V x = hn::Mul(hn::LoadU(f32, at), hn::Set(f32, unit));
      if (units.cap > 0) {
        V slope;
        const V t = tanh(x, room.slope ? &slope : nullptr);
        x = hn::MulAdd(t, hn::Set(f32, units.cap), hn::Mul(t, hn::Set(f32, units.cap_rest)));
        if (room.slope) hn::StoreU(slope, f32, room.slope + row * width + lane);
      }
      if (relative) {
        // Lanes past the end read the value of the last row: the array ends there.
        V r;
        if (lane + kLanes <= q.count) {
          r = hn::LoadU(f32, relative + q.position + lane - j);
        } else {
          HWY_ALIGN float near[kLanes];
          for (int l = 0; l < kLanes; ++l) near[l] = relative[q.position + smaller(lane + l, q.count - 1) - j];
          r = hn::Load(f32, near);
        }
        x = add_bias(x, r);
      }
      if (scores.bias) x = add_bias(x, hn::LoadU(f32, room.bias + row * width + lane));
      if (kind.banded) {
        const auto key = hn::Set(i32, static_cast<int32_t>(j));
        const auto out = hn::Or(hn::Gt(hn::LoadU(i32, q.low + lane), key), hn::Gt(key, hn::LoadU(i32, q.high + lane)));
        x = hn::IfThenElse(hn::RebindMask(f32, out), none, x);
      }
      if (documents) {
        const auto same = hn::Eq(hn::LoadU(i32, q.document + lane), hn::Set(i32, documents[j * document_step]));
        x = hn::IfThenElse(hn::RebindMask(f32, same), x, none);
      }
      if (kind.dense) {
        const auto bits = hn::LoadU(u32, room.kept + row / 32 * kMaxQueries + lane);
        const auto kept = hn::TestBit(bits, hn::Set(u32, uint32_t{1} << (row % 32)));
        x = hn::IfThenElse(hn::RebindMask(f32, kept), x, none);
      }
      hn::StoreU(x, f32, at);
      top[n] = hn::Max(top[n], x);
    }
  }
}

// Whether a product is not yet a score.
inline bool has_pass(const Scores& scores, TileKind kind) {
  return kind.pairs == Pairs::some || scores.cap > 0 || scores.relative || scores.bias;
}
// Whether pairs of this tile may be dropped: then non-finite values must be looked for.
inline bool may_drop(const Scores& scores, TileKind kind) {
  return kind.pairs == Pairs::some || scores.relative || scores.bias;
}

// Scores of the tile, still to be multiplied by the number returned: the plain case leaves that to the exponential,
// where it costs nothing and rounds once.
template <int N>
HWY_INLINE float tile_scores(const Scores& scores, const QueryBlock& q, const KeyBlock& block, KeySpan keys,
                             TileKind kind, int64_t key_width, const ScoreRoom& room, float* s, V (&top)[N]) {
  const bool euclidean = scores.similarity == Similarity::euclidean;
  const ScoreUnits units = units_of(scores, q.head);
  const float unit = euclidean ? -units.square : units.query;
  int64_t ends[N];
  meet_keys(q, keys, kind, ends);
  product_scores<N>(q, block, keys, ends, key_width, euclidean, {scores.bias, q, keys}, s, top);
  if (!has_pass(scores, kind) && unit > 0) return unit;
  apply_scores<N>(scores, q, keys, kind, room, s, top, unit);
  return 1;
}

inline void load_keys(const RowSource& source, const Scores& scores, int64_t first, int64_t count, float* room,
                      KeyBlock& block) {
  block.first = first;
  block.count = count;
  block.finite = -1;
  block.k = source.fetch(first, count, room);
  if (scores.similarity == Similarity::euclidean)
    for (int64_t r = 0; r < count; ++r) block.offset[r] = square(block.k.data + r * block.k.stride, source.width);
}
