// The weights of chosen rows, rebuilt from lse; and statistics of all rows, streamed.
#pragma once

#include "multihead/kernels/cpu/attention/fma/backward.inl"
#include "multihead/kernels/cpu/attention/fma/backward_tasks.inl"
#include "multihead/kernels/cpu/attention/fma/block.inl"
#include "multihead/kernels/cpu/attention/fma/forward.inl"
#include "multihead/kernels/cpu/attention/fma/rows.inl"
#include "multihead/kernels/cpu/attention/fma/scores.inl"
#include "multihead/kernels/cpu/transpose.inl"
#include "multihead/kernels/cpu/vector_math.inl"

// A block of queries and the scores of one tile of it at a time.
struct Reader {
  QueryBlock q;
  float lse[kMaxQueries];  // in units of log 2; +inf where the row has no keys or the lane no row
  float *s, *k, *rows, *zeros;
  ScoreRoom scores;
};

inline Reader take_reader(Scratch& scratch, const Sizes& sizes) {
  Reader r{};
  r.q.columns = take<float>(scratch, sizes.key_width * kMaxQueries);
  r.s = take<float>(scratch, kBlockKeys * kMaxQueries);
  r.k = take<float>(scratch, kBlockKeys * sizes.key_width);
  r.rows = take<float>(scratch, kLanes * larger(kBlockKeys, sizes.key_width));
  r.zeros = take_zeros(scratch, sizes.key_width + 4);
  r.scores = take_score_room(scratch, false);
  return r;
}

template <class Args>
inline void read_queries(const Args& a, int64_t n, int64_t head, int64_t first, int64_t count, Reader& reader) {
  const Sequence& s = a.sequences.data[n];
  QueryBlock& q = reader.q;
  q.sequence = n;
  q.head = head;
  q.first = first;
  q.count = static_cast<int>(count);
  q.vectors = (q.count + kLanes - 1) / kLanes;
  load_queries(a.q, a.scores, s, q, reader.rows, reader.zeros);
  for (int r = 0; r < static_cast<int>(q.width()); ++r) {
    const float lse = r < q.count ? row_value(a.lse, s, head, first + r) : kNone;
    reader.lse[r] = lse == kNone ? __builtin_inff() : lse * kLog2E;
  }
}

template <int N>
float read_tile(const Scores& scores, int64_t key_width, const Reader& reader, const KeyBlock& block, KeySpan span,
                TileKind kind) {
  V top[N];
  for (int n = 0; n < N; ++n) top[n] = hn::Set(f32, kNone);
  return tile_scores<N>(scores, reader.q, block, span, kind, key_width, reader.scores, reader.s, top);
}

// Calls body(span, unit) for every tile with kept pairs: reader.s times unit are its scores.
template <class Args, class Body>
inline void for_tiles(const Args& a, const Sizes& sizes, Reader& reader, Body&& body) {
  const Sequence& s = a.sequences.data[reader.q.sequence];
  const RowSource keys = key_source(a.kv, a.scores, s, reader.q.sequence, reader.q.head / sizes.group);
  const int64_t end = reader.q.high_max + 1;
  for (int64_t first = reader.q.low_min / kBlockKeys * kBlockKeys; first < end; first += kBlockKeys) {
    KeyBlock block;
    load_keys(keys, a.scores, first, smaller(kBlockKeys, end - first), reader.k, block);
    const KeySpan span = reachable(reader.q, block.first, block.count);
    const TileKind kind = classify(a.scores, reader.q, span, reader.scores);
    if (kind.pairs == Pairs::none) continue;
    switch (reader.q.vectors) {
      case 1: body(span, read_tile<1>(a.scores, sizes.key_width, reader, block, span, kind)); break;
      case 2: body(span, read_tile<2>(a.scores, sizes.key_width, reader, block, span, kind)); break;
      default: body(span, read_tile<3>(a.scores, sizes.key_width, reader, block, span, kind)); break;
    }
  }
}

inline float* weight_row(const AttentionWeightsArgs& a, int64_t n, int64_t head, int64_t row) {
  const View& w = a.weights;
  return static_cast<float*>(w.data) + n * w.stride[0] + head * w.stride[1] + row * w.stride[2];
}

// Weights of rows[at … at + count), which are consecutive queries.
inline void write_weights(const AttentionWeightsArgs& a, const Sizes& sizes, int64_t n, int64_t head, int64_t at,
                          int64_t count, Reader& reader) {
  read_queries(a, n, a.heads[head], a.rows[at], count, reader);
  const int64_t width = reader.q.width();
  for_tiles(a, sizes, reader, [&](KeySpan span, float unit) {
    for (int v = 0; v < reader.q.vectors; ++v) {
      const V lse = hn::LoadU(f32, reader.lse + v * kLanes);
      for (int64_t j = 0; j < span.end - span.begin; ++j) {
        float* p = reader.s + j * width + v * kLanes;
        hn::StoreU(exp2(hn::MulSub(hn::LoadU(f32, p), hn::Set(f32, unit), lse)), f32, p);
      }
      float* rows[kLanes];
      for (int r = 0; r < kLanes; ++r) {
        const int64_t lane = v * kLanes + r;
        rows[r] = lane < count ? weight_row(a, n, head, at + lane) + span.begin : reader.rows + r * kBlockKeys;
      }
      columns_to_rows(reader.s + v * kLanes, width, span.end - span.begin, hn::Set(f32, 1.0f), rows);
    }
  });
}

void attention_weights(const AttentionWeightsArgs& a, Queue&) {
  const Sizes sizes = sizes_of(a.q, a.kv);
  parallel_for(a.sequences.count * a.head_count, [&](int64_t task) {
    const int64_t n = task / a.head_count, head = task % a.head_count, q_len = a.sequences.data[n].q_len;
    Scratch scratch;
    Reader reader = take_reader(scratch, sizes);
    for (int64_t at = 0; at < a.row_count;) {
      int64_t count = 1;
      while (count < kMaxQueries && at + count < a.row_count && a.rows[at + count] == a.rows[at] + count &&
             a.rows[at + count] < q_len)
        ++count;
      for (int64_t r = 0; r < count; ++r)
        memset(weight_row(a, n, head, at + r), 0, static_cast<size_t>(a.weights.size[3]) * 4);
      if (a.rows[at] < q_len) write_weights(a, sizes, n, head, at, count, reader);
      at += count;
    }
  });
}
