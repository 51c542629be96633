// Statistics of the weights of every row, gathered tile by tile.
#pragma once

#include "multihead/kernels/cpu/attention/fma/backward_tasks.inl"
#include "multihead/kernels/cpu/attention/fma/block.inl"
#include "multihead/kernels/cpu/attention/fma/rows.inl"
#include "multihead/kernels/cpu/attention/weights.inl"
#include "multihead/kernels/cpu/vector_math.inl"

// The largest weights of each lane so far, largest first.
struct TopKeys {
  int64_t count;            // how many are wanted
  float* scores;            // (kMaxQueries, count)
  int32_t* keys;            // likewise; -1: none
  float last[kMaxQueries];  // the smallest wanted score

  void clear(int64_t lanes) {
    for (int64_t at = 0; at < lanes * count; ++at) scores[at] = kNone, keys[at] = -1;
    for (int64_t lane = 0; lane < lanes; ++lane) last[lane] = kNone;
  }
  void insert(int64_t lane, float score, int32_t key) {
    float* s = scores + lane * count;
    int32_t* k = keys + lane * count;
    int64_t at = count - 1;
    for (; at > 0 && s[at - 1] < score; --at) s[at] = s[at - 1], k[at] = k[at - 1];
    s[at] = score;
    k[at] = key;
    last[lane] = s[count - 1];
  }
  // Keys come in ascending order and only a larger score displaces one: equal ones stay by smaller key.
  void offer(const float* s, int64_t vectors, int32_t key) {
    for (int64_t v = 0; v < vectors; ++v) {
      const V x = hn::LoadU(f32, s + v * kLanes);
      const M better = hn::Gt(x, hn::LoadU(f32, last + v * kLanes));
      if (hn::AllFalse(f32, better)) continue;
      for (int64_t lane = v * kLanes; lane < (v + 1) * kLanes; ++lane)
        if (s[lane] > last[lane]) insert(lane, s[lane], key);
    }
  }
};

struct RowStatistics {
  float entropy[kMaxQueries], distance[kMaxQueries];
  TopKeys top;
  float* received;  // (Tk) or null
};

inline void add_statistics(const Reader& reader, KeySpan span, float unit, RowStatistics& out) {
  const QueryBlock& q = reader.q;
  const int64_t width = q.width();
  for (int64_t j = span.begin; j < span.end; ++j) {
    float* s = reader.s + (j - span.begin) * width;
    V all = hn::Zero(f32);
    for (int v = 0; v < q.vectors; ++v) {
      const V x = hn::Mul(hn::LoadU(f32, s + v * kLanes), hn::Set(f32, unit)),
              lse = hn::LoadU(f32, reader.lse + v * kLanes);
      hn::StoreU(x, f32, s + v * kLanes);
      const V p = exp2(hn::Sub(x, lse));
      const V position = hn::Add(hn::Set(f32, static_cast<float>(q.position + v * kLanes - j)), hn::Iota(f32, 0));
      // A dropped pair and a lane without keys have an infinite surprise of weight 0.
      const V surprise = hn::IfThenZeroElse(hn::Eq(p, hn::Zero(f32)), hn::Sub(lse, x));
      hn::StoreU(hn::MulAdd(p, surprise, hn::LoadU(f32, out.entropy + v * kLanes)), f32, out.entropy + v * kLanes);
      hn::StoreU(hn::MulAdd(p, hn::Abs(position), hn::LoadU(f32, out.distance + v * kLanes)), f32,
                 out.distance + v * kLanes);
      all = hn::Add(all, p);
    }
    if (out.received) out.received[j] += hn::GetLane(hn::SumOfLanes(f32, all));
    if (out.top.count > 0) out.top.offer(s, q.vectors, static_cast<int32_t>(j));
  }
}

template <class T>
inline T* element(const View& x, int64_t a, int64_t b, int64_t c, int64_t d = 0) {
  return static_cast<T*>(x.data) + a * x.stride[0] + b * x.stride[1] + c * x.stride[2] + d * x.stride[3];
}

inline void write_statistics(const AttentionStatisticsArgs& a, const Reader& reader, const RowStatistics& from) {
  const QueryBlock& q = reader.q;
  for (int r = 0; r < q.count; ++r) {
    const int64_t row = q.first + r;
    const bool empty = reader.lse[r] == -kNone;
    float entropy = empty ? 0 : from.entropy[r] * kLn2;
    if (a.scores.sink && !empty) {
      const float logit = a.scores.sink[q.head], lse = reader.lse[r] * kLn2;
      if (logit != kNone) entropy += expf(logit - lse) * (lse - logit);
    }
    if (a.entropy) *element<float>(a.entropy, q.sequence, q.head, row) = entropy;
    if (a.distance) *element<float>(a.distance, q.sequence, q.head, row) = empty ? 0 : from.distance[r];
    for (int64_t t = 0; t < from.top.count; ++t) {
      const int32_t key = from.top.keys[r * from.top.count + t];
      const float score = from.top.scores[r * from.top.count + t];
      if (a.top_keys) *element<int32_t>(a.top_keys, q.sequence, q.head, row, t) = key;
      if (a.top_weights)
        *element<float>(a.top_weights, q.sequence, q.head, row, t) = key < 0 ? 0 : exp2f(score - reader.lse[r]);
    }
  }
}

// Rows and keys past the sequence's end.
inline void clear_statistics(const AttentionStatisticsArgs& a, int64_t n, int64_t head, int64_t top) {
  const Sequence& s = a.sequences.data[n];
  for (int64_t row = s.q_len; a.entropy && row < a.entropy.size[2]; ++row) *element<float>(a.entropy, n, head, row) = 0;
  for (int64_t row = s.q_len; a.distance && row < a.distance.size[2]; ++row)
    *element<float>(a.distance, n, head, row) = 0;
  for (int64_t t = 0; t < top; ++t) {
    for (int64_t row = s.q_len; a.top_keys && row < a.top_keys.size[2]; ++row)
      *element<int32_t>(a.top_keys, n, head, row, t) = -1;
    for (int64_t row = s.q_len; a.top_weights && row < a.top_weights.size[2]; ++row)
      *element<float>(a.top_weights, n, head, row, t) = 0;
  }
}

inline void head_statistics(const AttentionStatisticsArgs& a, const Sizes& sizes, int64_t n, int64_t head) {
  const Sequence& s = a.sequences.data[n];
  const int64_t top = a.top_keys ? a.top_keys.size[3] : a.top_weights ? a.top_weights.size[3] : 0;
  Scratch scratch;
  Reader reader = take_reader(scratch, sizes);
  RowStatistics rows{};
  rows.top.count = top;
  rows.top.scores = take<float>(scratch, kMaxQueries * top + 1);
  rows.top.keys = take<int32_t>(scratch, kMaxQueries * top + 1);
  if (a.received) rows.received = take_zeros(scratch, larger(s.k_len, 1));
  for (int64_t first = 0; first < s.q_len; first += kMaxQueries) {
    read_queries(a, n, head, first, smaller(kMaxQueries, s.q_len - first), reader);
    memset(rows.entropy, 0, sizeof rows.entropy);
    memset(rows.distance, 0, sizeof rows.distance);
    rows.top.clear(reader.q.width());
    for_tiles(a, sizes, reader, [&](KeySpan span, float unit) { add_statistics(reader, span, unit, rows); });
    write_statistics(a, reader, rows);
  }
  clear_statistics(a, n, head, top);
  for (int64_t j = 0; a.received && j < a.received.size[2]; ++j)
    *element<float>(a.received, n, head, j) = j < s.k_len ? rows.received[j] : 0;
}

void attention_statistics(const AttentionStatisticsArgs& a, Queue&) {
  const Sizes sizes = sizes_of(a.q, a.kv);
  parallel_for(a.sequences.count * sizes.heads,
               [&](int64_t task) { head_statistics(a, sizes, task / sizes.heads, task % sizes.heads); });
}
