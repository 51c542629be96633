// The backward pass: a task owns some keys of a key head and walks its queries; dq is added task after task.
#pragma once

#include "multihead/kernels/cpu/attention/fma/backward_bias.inl"
#include "multihead/kernels/cpu/attention/fma/backward_tile.inl"
#include "multihead/kernels/cpu/attention/fma/block.inl"
#include "multihead/kernels/cpu/attention/fma/forward.inl"
#include "multihead/kernels/cpu/attention/fma/rows.inl"
#include "multihead/kernels/cpu/attention/fma/scores.inl"
#include "multihead/kernels/cpu/attention/order.inl"
#include "multihead/kernels/cpu/rows/dropout.inl"
#include "multihead/kernels/cpu/transpose.inl"
#include "multihead/kernels/cpu/vector_math.inl"

// Most keys of a task: their rows and gradients fill about half of a 1 MiB L2, and a block of queries is packed once
// for all.
inline int64_t backward_keys(const Sizes& sizes) {
  const int64_t wide = larger(sizes.key_width, sizes.value_width);
  return wide <= 128 ? 256 : wide <= 256 ? 128 : kBlockKeys;
}

// The call, cut up: sequences into tasks of keys, rows into blocks of lanes.
struct BackwardPlan {
  const AttentionBackwardArgs& a;
  Sizes sizes;
  int64_t most_keys, fewest_keys;  // of a task
  bool writes_bias;                // every pair of dbias falls to one tile, which need not add to what is there
  int64_t *tasks_at, *rows_at,
      *blocks_at;         // per sequence: first task, first row (of one head), first block (of one head)
  float* delta;           // rows of (sequence, head)
  float *lse, *lse_rest;  // likewise: lse in units of log 2, and what rounding to them left
  float* dq;              // (blocks of (sequence, head), Dk, kMaxQueries)
  float* projection;      // cosine: q̂ · Σ ds k̂ per row
  Turns dq_turns;         // per block of (sequence, head)
  Turns done;             // per task: 0 or 1

  // A quarter of the head's, so that several threads share even one head's evenly (Zen 4, one head, two threads, width
  // 128, full: T 128 1.44 times as fast as in one task).
  int64_t keys_per_task(int64_t n) const {
    return smaller(most_keys, larger(fewest_keys, round_up((a.sequences.data[n].k_len + 3) / 4, kBlockKeys)));
  }
  int64_t key_tasks(int64_t n) const {
    return larger(1, (a.sequences.data[n].k_len + keys_per_task(n) - 1) / keys_per_task(n));
  }
  int64_t blocks(int64_t n) const { return (a.sequences.data[n].q_len + kMaxQueries - 1) / kMaxQueries; }
  int64_t row(int64_t n, int64_t head) const { return rows_at[n] * sizes.heads + head * a.sequences.data[n].q_len; }
  int64_t block(int64_t n, int64_t head) const { return blocks_at[n] * sizes.heads + head * blocks(n); }
  int64_t task(int64_t n, int64_t key_head, int64_t part) const { return tasks_at[n] + key_head * key_tasks(n) + part; }
};

inline float row_value(const View& x, const Sequence& s, int64_t head, int64_t row) {
  return static_cast<const float*>(
      x.data)[s.batch * x.stride[0] + head * x.stride[1] + (s.q_begin + row) * x.stride[2]];
}

template <class T>
inline float dot(const T* x, const T* y, int64_t width) {
  V sum = hn::Zero(f32);
  int64_t c = 0;
  for (; c + kLanes <= width; c += kLanes) sum = hn::MulAdd(load_widened(x + c), load_widened(y + c), sum);
  float total = hn::GetLane(hn::SumOfLanes(f32, sum));
  for (; c < width; ++c) total += widen(x[c]) * widen(y[c]);
  return total;
}

template <class T>
inline bool all_zero(const T* x, int64_t count) {
  for (int64_t c = 0; c < count; ++c)
    if (!(widen(x[c]) == 0)) return false;
  return true;
}

// Σ d_o · o of a row. A row without keys may have an lse, its sink's; its o is 0, and counts whatever stands in d_o.
template <class T>
inline float delta_of(const RowWalk& o, const RowWalk& d_o, int64_t row, int64_t width) {
  const T* at = reinterpret_cast<const T*>(o.at(row));
  return all_zero(at, width) ? 0 : dot(at, reinterpret_cast<const T*>(d_o.at(row)), width);
}

inline void set_lse(const BackwardPlan& plan, int64_t row, double units) {
  plan.lse[row] = static_cast<float>(units);
  plan.lse_rest[row] = __builtin_isfinite(units) ? static_cast<float>(units - static_cast<double>(plan.lse[row])) : 0;
}

// delta = Σ d_o · o - d_lse of every row of a head; 0 for a row without keys, whatever stands in its d_o. And its lse.
inline void row_deltas(const BackwardPlan& plan, int64_t n, int64_t head) {
  const AttentionBackwardArgs& a = plan.a;
  const Sequence& s = a.sequences.data[n];
  const int64_t width = plan.sizes.value_width;
  const RowWalk o = walk(a.o, s.batch, head, s.q_begin), d_o = walk(a.d_o, s.batch, head, s.q_begin);
  const auto delta_of_type = a.o.dtype == DType::f32    ? delta_of<float>
                             : a.o.dtype == DType::bf16 ? delta_of<bf16>
                                                        : delta_of<f16>;
  for (int64_t i = 0; i < s.q_len; ++i) {
    const int64_t row = plan.row(n, head) + i;
    const float lse = row_value(a.lse, s, head, i);
    set_lse(plan, row, static_cast<double>(lse) * kPerUnit);
    plan.delta[row] =
        lse == kNone ? 0 : delta_of_type(o, d_o, i, width) - (a.d_lse ? row_value(a.d_lse, s, head, i) : 0);
  }
}

// Rows of x (q or d_o) as (lanes, width padded with zeros), times factor (times 1/|x| where normalised), in place where
// they are so.
inline Rows load_rows(const View& x, const Sequence& s, const QueryBlock& q, float factor, bool normalise, float* to) {
  const int64_t width = x.size[3], room = round_up(width, kLanes);
  const RowWalk from = walk(x, s.batch, q.head, s.q_begin + q.first);
  if (lies_as_read(x) && width == room && factor == 1 && !normalise)
    return {reinterpret_cast<const float*>(from.first), x.stride[2]};
  for (int r = 0; r < q.count; ++r) {
    float* row = to + r * room;
    widen_row(x.dtype, from.at(r), width, 1, row);
    if (normalise) normalise_row(row, width, row);
    if (factor != 1) widen_row(row, width, factor, row);
    for (int64_t c = width; c < room; ++c) row[c] = 0;
  }
  return {to, room};
}

inline BackwardQueries take_queries(Scratch& scratch, const Sizes& sizes) {
  BackwardQueries b{};
  b.q.columns = take<float>(scratch, sizes.key_width * kMaxQueries);
  b.d_o_columns = take<float>(scratch, sizes.value_width * kMaxQueries);
  b.q_room = take<float>(scratch, round_up(sizes.key_width, kLanes) * kMaxQueries);
  b.d_o_room = take<float>(scratch, round_up(sizes.value_width, kLanes) * kMaxQueries);
  b.dq = take<float>(scratch, sizes.key_width * kMaxQueries);
  return b;
}

// The rows of a block and which keys they can reach; nothing is packed yet.
inline void place_block(const BackwardPlan& plan, int64_t n, int64_t head, int64_t number, BackwardQueries& b) {
  const Sequence& s = plan.a.sequences.data[n];
  QueryBlock& q = b.q;
  q.sequence = n;
  q.head = head;
  q.first = number * kMaxQueries;
  q.count = static_cast<int>(smaller(kMaxQueries, s.q_len - q.first));
  q.vectors = (q.count + kLanes - 1) / kLanes;
  limit_rows(plan.a.scores, s, q);
}

// The tasks [begin, end) of a head's keys that the limits let reach the rows of a block; the first one at least.
struct KeyTasks {
  int64_t begin, end;
};
inline KeyTasks tasks_of_rows(const BackwardPlan& plan, const QueryBlock& q) {
  if (q.high_max < q.low_min) return {0, 1};
  const int64_t keys = plan.keys_per_task(q.sequence);
  return {q.low_min / keys, q.high_max / keys + 1};
}

inline void clear_block(const BackwardPlan& plan, BackwardQueries& b) {
  load_documents(plan.a.scores, b.q);
  memset(b.dq, 0, static_cast<size_t>(plan.sizes.key_width * b.q.width()) * 4);
  memset(b.row_sum, 0, sizeof b.row_sum);
}

inline void load_block(const BackwardPlan& plan, BackwardQueries& b, float* rows_room, const float* zeros) {
  const AttentionBackwardArgs& a = plan.a;
  QueryBlock& q = b.q;
  const int64_t n = q.sequence, head = q.head;
  const Sequence& s = a.sequences.data[n];
  load_queries(a.q, a.scores, s, q, rows_room, zeros);
  for (int v = 0; v < q.vectors; ++v) {
    const float* rows[kLanes];
    lane_rows(a.d_o, s, q, v * kLanes, plan.sizes.value_width, rows_room, zeros, rows);
    rows_to_columns(rows, plan.sizes.value_width, hn::Set(f32, 1.0f), b.d_o_columns + v * kLanes, q.width());
  }
  const bool cosine = a.scores.similarity == Similarity::cosine;
  b.q_rows = load_rows(a.q, s, q, cosine ? a.scores.scale[head] : 1, cosine, b.q_room);
  b.d_o_rows = load_rows(a.d_o, s, q, 1, false, b.d_o_room);
  b.finite = -1;
  for (int r = 0; r < static_cast<int>(q.width()); ++r) {
    const int64_t row = plan.row(n, head) + q.first + r;
    const bool keyless = r >= q.count || plan.lse[row] == kNone;
    b.lse[r] = keyless ? -kNone : plan.lse[row];
    b.lse_rest[r] = keyless ? 0 : plan.lse_rest[row];
    b.delta[r] = r < q.count ? plan.delta[row] : 0;
  }
}

// Whether every number that a dropped pair of this tile could leak is finite.
inline bool tile_finite(const Sizes& sizes, BackwardQueries& b, const KeyBlock& block) {
  if (b.finite < 0) {
    b.finite = all_finite(b.q_rows.data, b.q_rows.stride, b.q.count, sizes.key_width) &&
               all_finite(b.d_o_rows.data, b.d_o_rows.stride, b.q.count, sizes.value_width);
  }
  return b.finite && all_finite(block.k.data, block.k.stride, block.count, sizes.key_width) &&
         all_finite(block.v.data, block.v.stride, block.count, sizes.value_width);
}

struct BackwardTask {
  const BackwardPlan& plan;
  int64_t n, key_head, part;
  BackwardKeys keys;
  BackwardRoom room;
  float* relative;  // gradient of the relative bias by distance, or null

  // The task before this one that adds to the same dbias or drelative, or -1.
  int64_t before(bool all_batches, bool all_heads, bool any_part) const {
    if (any_part && part > 0) return plan.task(n, key_head, part - 1);
    if (all_heads && key_head > 0) return plan.task(n, key_head - 1, any_part ? plan.key_tasks(n) - 1 : part);
    for (int64_t m = n - 1; all_batches && m >= 0; --m)
      if (any_part || plan.key_tasks(m) > part)
        return plan.task(m, all_heads ? plan.sizes.key_heads - 1 : key_head, any_part ? plan.key_tasks(m) - 1 : part);
    return -1;
  }
  bool wait_for(int64_t task) const { return task < 0 || plan.done.wait(task, 1); }
  int64_t before_bias() const {
    return before(plan.a.dbias.stride[0] == 0, plan.a.dbias.stride[1] == 0, plan.a.dbias.stride[3] == 0);
  }
};

template <int N>
void backward_tile(BackwardTask& task, BackwardQueries& b, KeyBlock& block, KeySpan span, TileKind kind) {
  const AttentionBackwardArgs& a = task.plan.a;
  const Sizes& sizes = task.plan.sizes;
  const BackwardRoom& room = task.room;
  const int64_t count = span.end - span.begin;
  V top[N];
  for (int v = 0; v < N; ++v) top[v] = hn::Set(f32, kNone);
  const float unit = tile_scores<N>(a.scores, b.q, block, span, kind, sizes.key_width, room.scores, room.p, top);
  const bool dropping = may_drop(a.scores, kind);
  const bool careful = dropping && !tile_finite(sizes, b, block);
  if (careful) remember_kept<N>(room.p, count, room.kept);
  if (room.factors) dropout_factors(a.scores, b.q, span, room.factors);
  int64_t ends[N];
  meet_keys(b.q, span, kind, ends);
  const Rows v{block.v.data + (span.begin - block.first) * block.v.stride, block.v.stride};
  product_gradients<N>(b, v, sizes.value_width, ends, {a.dbias, b.q, span}, room.ds);
  probability_gradients<N>(b, ends, unit, dropping, room);
  if (a.dbias && task.plan.writes_bias)
    add_dense_bias<true>(a.dbias, b.q, span, room.ds, room.scores.rows);
  else if (a.dbias)
    add_dense_bias(a.dbias, b.q, span, room.ds, room.scores.rows);
  if (task.relative)
    add_relative_bias(b.q, span, a.sequences.data[task.n].position, task.keys.first + task.keys.count - 1, room.ds,
                      task.relative);
  if (a.scores.cap > 0) multiply_slope<N>(count, room);
  add_gradients<N>(a, sizes, b, task.keys, span, ends, careful, room);
}

// One block of queries against all keys of the task; packed when the first pair is kept. False: none is.
inline bool backward_block(BackwardTask& task, BackwardQueries& b, float* rows_room, const float* zeros) {
  const Scores& scores = task.plan.a.scores;
  bool packed = false;
  for (int64_t at = 0; at < task.keys.count; at += kBlockKeys) {
    KeyBlock block;
    block.first = task.keys.first + at;
    block.count = smaller(kBlockKeys, task.keys.count - at);
    block.k = {task.keys.k.data + at * task.keys.k.stride, task.keys.k.stride};
    block.v = {task.keys.v.data + at * task.keys.v.stride, task.keys.v.stride};
    KeySpan span = reachable(b.q, block.first, block.count);
    const TileKind kind = classify(scores, b.q, span, task.room.scores, &span);
    if (kind.pairs == Pairs::none) continue;
    if (!packed) load_block(task.plan, b, rows_room, zeros);
    packed = true;
    if (scores.similarity == Similarity::euclidean)
      for (int64_t r = 0; r < block.count; ++r)
        block.offset[r] = square(block.k.data + r * block.k.stride, task.plan.sizes.key_width);
    switch (b.q.vectors) {
      case 1: backward_tile<1>(task, b, block, span, kind); break;
      case 2: backward_tile<2>(task, b, block, span, kind); break;
      default: backward_tile<3>(task, b, block, span, kind); break;
    }
  }
  return packed;
}

// Turns Σ ds · y (cosine: y = k̂; euclidean: y = k, with the sum of ds) into the gradient of x; x is the row as it came.
// Returns x̂ · Σ. A row that gathered exactly nothing has the gradient 0, whatever stands in x.
inline float finish_row(Similarity similarity, float scale, float sum, const float* x, int64_t width, float* gradient) {
  if (all_zero(gradient, width) && sum == 0) return 0;
  float projection = 0;
  if (similarity == Similarity::cosine) {
    const float inverse = inverse_norm(square(x, width));
    projection = dot(x, gradient, width) * inverse;
    for (int64_t c = 0; c < width; ++c) gradient[c] = scale * inverse * (gradient[c] - projection * inverse * x[c]);
  } else {
    for (int64_t c = 0; c < width; ++c) gradient[c] = 2 * scale * (gradient[c] - sum * x[c]);
  }
  return projection;
}

// The last task of a head's keys writes dq of a block.
inline void write_dq(const BackwardPlan& plan, const BackwardQueries& b, const float* columns, float* rows_room,
                     const float* row_sum) {
  const AttentionBackwardArgs& a = plan.a;
  const QueryBlock& q = b.q;
  const Sequence& s = a.sequences.data[q.sequence];
  const int64_t width = plan.sizes.key_width, stride = width + 4;
  const float scale = a.scores.scale[q.head];
  const bool plain = a.scores.similarity == Similarity::dot, direct = plain && a.dq && a.dq.dtype == DType::f32;
  float* x = rows_room + kLanes * stride;
  const RowWalk dq = a.dq ? walk(a.dq, s.batch, q.head, s.q_begin + q.first) : RowWalk{};
  for (int v = 0; v < q.vectors; ++v) {
    float* rows[kLanes];
    for (int r = 0; r < kLanes; ++r)
      rows[r] =
          direct && v * kLanes + r < q.count ? reinterpret_cast<float*>(dq.at(v * kLanes + r)) : rows_room + r * stride;
    columns_to_rows(columns + v * kLanes, q.width(), width, hn::Set(f32, plain ? scale : 1.0f), rows);
    for (int r = 0; !direct && r < kLanes && v * kLanes + r < q.count; ++r) {
      const int64_t i = q.first + v * kLanes + r;
      if (!plain) {
        widen_row(a.q.dtype, address(a.q, s.batch, q.head, s.q_begin + i), width, 1, x);
        const float along = finish_row(a.scores.similarity, scale, row_sum[v * kLanes + r], x, width, rows[r]);
        if (plan.projection) plan.projection[plan.row(q.sequence, q.head) + i] = along;
      }
      if (a.dq) narrow_row(a.dq.dtype, rows[r], width, dq.at(v * kLanes + r));
    }
  }
}

// Adds this task's part of dq of a block, if it has any, after those of smaller keys; the last one writes it out.
inline bool pass_dq(const BackwardTask& task, int64_t number, const BackwardQueries& b, KeyTasks tasks, bool any,
                    float* rows_room) {
  const BackwardPlan& plan = task.plan;
  if (tasks.begin + 1 == tasks.end) {
    write_dq(plan, b, b.dq, rows_room, b.row_sum);
    return true;
  }
  const int64_t block = plan.block(task.n, b.q.head) + number, size = plan.sizes.key_width * b.q.width();
  float* sum = plan.dq + block * (plan.sizes.key_width + 1) * kMaxQueries;
  float* row_sum = sum + plan.sizes.key_width * kMaxQueries;
  if (!plan.dq_turns.wait(block, static_cast<int32_t>(task.part - tasks.begin))) return false;
  const bool first = task.part == tasks.begin;
  const auto add = [&](float* to, const float* from, int64_t count) HWY_ATTR __attribute__((always_inline)) {
    for (int64_t c = 0; c < count; c += kLanes) {
      const V x = hn::LoadU(f32, from + c);
      hn::StoreU(first ? x : hn::Add(hn::LoadU(f32, to + c), x), f32, to + c);
    }
  };
  if (any || first) {
    add(sum, b.dq, size);
    add(row_sum, b.row_sum, b.q.width());
  }
  if (task.part + 1 == tasks.end) write_dq(plan, b, sum, rows_room, row_sum);
  plan.dq_turns.pass(block);
  return true;
}
