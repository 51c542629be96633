// The tasks of the backward pass on tiles: what each writes, and in which order dq is added.
#pragma once

#include "multihead/kernels/cpu/attention/fma/backward.inl"
#include "multihead/kernels/cpu/attention/fma/backward_bias.inl"
#include "multihead/kernels/cpu/attention/fma/backward_tasks.inl"
#include "multihead/kernels/cpu/attention/fma/backward_tile.inl"
#include "multihead/kernels/cpu/attention/fma/block.inl"
#include "multihead/kernels/cpu/attention/fma/rows.inl"
#include "multihead/kernels/cpu/attention/tiles/backward.inl"
#include "multihead/kernels/cpu/attention/tiles/gradient.inl"
#include "multihead/kernels/cpu/attention/tiles/keys.inl"
#include "multihead/kernels/cpu/attention/tiles/softmax.inl"
#include "multihead/kernels/cpu/attention/tiles/spans.inl"
#include "multihead/kernels/cpu/attention/tiles/write.inl"
#include "multihead/kernels/cpu/tile.inl"
#include "multihead/kernels/cpu/tile_pack.inl"
#include "multihead/kernels/cpu/transpose.inl"
#include "multihead/kernels/cpu/vector_math.inl"

// 16 rows of 32 columns out of two f32 tiles, even and odd columns.
inline void rows_of_tiles(const float* even, const float* odd, float* rows, int64_t stride) {
  for (int64_t r = 0; r < 16; ++r) {
    for (int64_t c = 0; c < 16; ++c) {
      rows[r * stride + 2 * c] = even[16 * r + c];
      rows[r * stride + 2 * c + 1] = odd[16 * r + c];
    }
  }
}

// Rows of dk or dv, narrowed, out of tiles[key / 16][column / 32][even, odd].
inline void write_tile_rows(const float* tiles, int64_t across, int64_t count, int64_t width, float by, const View& to,
                            const Sequence& s, int64_t head, int64_t first) {
  const __m512 factor = _mm512_set1_ps(by);
  for (int64_t j = 0; j < count; ++j) {
    uint16_t* row = reinterpret_cast<uint16_t*>(writable(to, s.batch, head, s.k_begin + first + j));
    for (int64_t unit = 0; unit < across; ++unit) {
      const float* even = tiles + (j / 16 * across + unit) * 2 * kTileFloats + j % 16 * 16;
      const __m512i words = round_pairs(_mm512_mul_ps(_mm512_load_ps(even), factor),
                                        _mm512_mul_ps(_mm512_load_ps(even + kTileFloats), factor));
      const __mmask32 mask = static_cast<__mmask32>((uint64_t{1} << smaller(32, width - 32 * unit)) - 1);
      _mm512_mask_storeu_epi16(row + 32 * unit, mask, words);
    }
  }
}

// dk through a similarity other than dot.
inline void write_similarity_keys(const TileGradPlan& plan, const TileGradKeys& keys, const Sequence& s,
                                  int64_t key_head, Scratch& scratch) {
  const AttentionBackwardArgs& a = plan.base.a;
  const int64_t width = plan.t.sizes.key_width, stride = 32 * plan.t.across_k;
  float *rows = take<float>(scratch, 16 * stride), *x = take<float>(scratch, stride);
  const float scale = a.scores.similarity == Similarity::euclidean ? 0.5f : 1.0f;
  for (int64_t j = 0; j < keys.count; ++j) {
    if (j % 16 == 0) {
      for (int64_t unit = 0; unit < plan.t.across_k; ++unit) {
        const float* even = keys.dk + (j / 16 * plan.t.across_k + unit) * 2 * kTileFloats;
        rows_of_tiles(even, even + kTileFloats, rows + 32 * unit, stride);
      }
    }
    const int64_t row = s.k_begin + keys.first + j;
    widen_row(DType::bf16, address(a.kv.k, s.batch, key_head, row), width, 1, x);
    finish_row(a.scores.similarity, scale, 2 * keys.column_sum[j], x, width, rows + j % 16 * stride);
    narrow_row(DType::bf16, rows + j % 16 * stride, width, writable(a.dk, s.batch, key_head, row));
  }
}

// dq of a block through a similarity other than dot.
inline void write_similarity_queries(const TileGradPlan& plan, const QueryBlock& q, const float* sums,
                                     const float* row_sum, float* room) {
  const AttentionBackwardArgs& a = plan.base.a;
  const Sequence& s = a.sequences.data[q.sequence];
  const int64_t width = plan.t.sizes.key_width, stride = 32 * plan.t.across_k;
  float* x = room + 16 * stride;
  for (int half = 0; half < 2; ++half) {
    for (int64_t unit = 0; unit < plan.t.across_k; ++unit) {
      const float *even = sums + (4 * unit + half) * kTileFloats, *odd = even + 2 * kTileFloats;
      for (int64_t r = 0; r < 16; ++r)
        for (int64_t lane = 0; lane < 16; ++lane) {
          room[lane * stride + 32 * unit + 2 * r] = even[16 * r + lane];
          room[lane * stride + 32 * unit + 2 * r + 1] = odd[16 * r + lane];
        }
    }
    for (int r = 0; r < 16 && 16 * half + r < q.count; ++r) {
      const int64_t i = q.first + 16 * half + r;
      float* row = room + r * stride;
      widen_row(DType::bf16, address(a.q, s.batch, q.head, s.q_begin + i), width, 1, x);
      const float along =
          finish_row(a.scores.similarity, a.scores.scale[q.head], row_sum[16 * half + r], x, width, row);
      if (plan.base.projection) plan.base.projection[plan.base.row(q.sequence, q.head) + i] = along;
      if (a.dq) narrow_row(DType::bf16, row, width, writable(a.dq, s.batch, q.head, s.q_begin + i));
    }
  }
}

// dq of a block out of tiles[column / 32][even, odd][query / 16], whose rows are columns.
inline void write_tile_dq(const TileGradPlan& plan, const QueryBlock& q, const float* sums, const float* row_sum,
                          float* room) {
  const AttentionBackwardArgs& a = plan.base.a;
  if (a.scores.similarity != Similarity::dot) return write_similarity_queries(plan, q, sums, row_sum, room);
  alignas(64) float by[kTileQueries];
  for (float& factor : by) factor = a.scores.scale[q.head];
  if (a.dq) write_tile_queries(sums, by, a.dq, a.sequences.data[q.sequence], q);
}

// Adds this task's part of dq of a span after those of smaller keys; the last one writes it out.
inline bool pass_tile_dq(const TileGradPlan& plan, const BackwardTask& task, const TileGradSpan& span, PartRange parts,
                         float* room) {
  const int64_t number = plan.span(task.n, span.blocks[0].state.q.head) + span.number, size = plan.dq_floats();
  float *sum = plan.dq + number * plan.span_floats(), *row_sum = sum + size;
  if (!plan.dq_turns.wait(number, static_cast<int32_t>(task.part - parts.begin))) return false;
  const bool first = task.part == parts.begin, last = task.part + 1 == parts.end;
  const int64_t used = span.count * 4 * plan.t.across_k * kTileFloats;
  // One part alone writes what it has; else the parts meet in `sum`.
  float* total = first && last ? span.dq : sum;
  if (!(first && last)) {
    for (int64_t n = 0; n < used; n += 16) {
      const __m512 x = _mm512_load_ps(span.dq + n);
      _mm512_store_ps(sum + n, first ? x : _mm512_add_ps(_mm512_load_ps(sum + n), x));
    }
  }
  for (int64_t b = 0; b < span.count; ++b)
    for (int r = 0; r < kTileQueries; ++r) {
      float* to = row_sum + b * kTileQueries + r;
      *to = first ? span.blocks[b].row_sum[r] : *to + span.blocks[b].row_sum[r];
    }
  if (last)
    for (int64_t b = 0; b < span.count; ++b)
      write_tile_dq(plan, span.blocks[b].state.q, total + b * 4 * plan.t.across_k * kTileFloats,
                    row_sum + b * kTileQueries, room);
  plan.dq_turns.pass(number);
  return true;
}

template <class Tiles>
void run_grad_pipe(Tiles& tiles, const TileGradPlan& plan, BackwardTask& task, TileGradKeys& keys, TileGradSpan& span,
                   TileGradRoom& room) {
  if constexpr (Tiles::kWholeSums)
    GradPipe<Tiles, 0, 0>{tiles, plan, task, keys, span, room}.run();
  else if (plan.t.across_k == 2 && plan.t.across_v == 2)
    GradPipe<Tiles, 2, 2>{tiles, plan, task, keys, span, room}.run();
  else if (plan.t.across_k == 4 && plan.t.across_v == 4)
    GradPipe<Tiles, 4, 4>{tiles, plan, task, keys, span, room}.run();
  else
    GradPipe<Tiles, 0, 0>{tiles, plan, task, keys, span, room}.run();
}

// The queries of one head, from the end: under a causal mask every task starts where all of them have work, and the
// one that adds to dq before it is ahead.
template <class Tiles>
bool walk_tile_head(Tiles& tiles, const TileGradPlan& plan, BackwardTask& task, int64_t head, TileGradKeys& keys,
                    TileGradSpan& span, TileGradRoom& room, float* rows_room) {
  const int64_t q_len = plan.base.a.sequences.data[task.n].q_len, distances = q_len + keys.count - 1;
  if (task.relative) memset(task.relative, 0, static_cast<size_t>(larger(distances, 0) + kMaxQueries) * 4);
  for (int64_t number = plan.spans(task.n) - 1; number >= 0; --number) {
    place_span(plan, task.n, head, number, span);
    const PartRange parts = parts_of_rows(plan, span.blocks, span.count);
    if (task.part < parts.begin || task.part >= parts.end) continue;
    load_span(plan, span);
    if (number > 0) ask_for_span(plan, task.n, head, number - 1);
    run_grad_pipe(tiles, plan, task, keys, span, room);
    if (wants_dq(plan.base.a) && !pass_tile_dq(plan, task, span, parts, rows_room)) return false;
  }
  return !task.relative || q_len == 0 || keys.count == 0 || pass_relative(task, head, distances);
}

template <class Tiles>
void backward_tile_task(const TileGradPlan& plan, int64_t n, int64_t key_head, int64_t part) {
  const AttentionBackwardArgs& a = plan.base.a;
  const Sequence& s = a.sequences.data[n];
  const Sizes& sizes = plan.t.sizes;
  Scratch scratch;
  TileGradKeys keys = load_tile_keys(plan, n, key_head, part, scratch);
  BackwardTask task{plan.base, n, key_head, part, {}, {}, nullptr};
  task.keys.first = keys.first, task.keys.count = keys.count;
  if (a.drelative) task.relative = take<float>(scratch, s.q_len + keys.count + kMaxQueries);
  TileGradRoom room = take_grad_room(scratch, plan);
  TileGradSpan span = take_span(scratch, plan);
  float* rows_room = take<float>(scratch, 17 * 32 * plan.t.across_k);

  if (a.dbias && !task.wait_for(task.before_bias())) return;
  const FlushSubnormals flush;
  {
    Tiles tiles;
    for (int64_t h = 0; h < sizes.group; ++h)
      if (!walk_tile_head(tiles, plan, task, key_head * sizes.group + h, keys, span, room, rows_room)) return;
  }
  if (a.dv)
    write_tile_rows(keys.dv, plan.t.across_v, keys.count, sizes.value_width, 1.0f, a.dv, s, key_head, keys.first);
  if (a.dk && a.scores.similarity == Similarity::dot) {
    const float by = plan.fast ? a.scores.scale[key_head * sizes.group] : 1.0f;
    write_tile_rows(keys.dk, plan.t.across_k, keys.count, sizes.key_width, by, a.dk, s, key_head, keys.first);
  } else if (a.dk) {
    write_similarity_keys(plan, keys, s, key_head, scratch);
  }
  if (a.drelative && !task.wait_for(task.before(true, false, true))) return;
  plan.base.done.pass(plan.base.task(n, key_head, part));
}

// Whether p follows from a score and ds from p and dp, and ds may be scaled at the end.
inline bool plain_gradients(const AttentionBackwardArgs& a, const Sizes& sizes) {
  const Scores& s = a.scores;
  if (s.similarity != Similarity::dot || s.cap > 0) return false;
  for (int64_t h = 0; h < sizes.heads; ++h)
    if (!(s.scale[h] > 0) || s.scale[h] != s.scale[h / sizes.group * sizes.group]) return false;
  return true;
}

inline TileGradPlan plan_tile_backward(const AttentionBackwardArgs& a, Scratch& scratch) {
  const TileSizes t = tile_sizes(sizes_of(a.q, a.kv));
  const int64_t count = a.sequences.count;
  TileGradPlan plan{{a,
                     t.sizes,
                     tile_backward_keys(t),
                     tile_backward_keys(t),
                     a.dbias && covers_bias(a),
                     take<int64_t>(scratch, count + 1),
                     take<int64_t>(scratch, count + 1),
                     nullptr,
                     nullptr,
                     nullptr,
                     nullptr,
                     nullptr,
                     nullptr,
                     {},
                     {}},
                    t,
                    plain_gradients(a, t.sizes),
                    take<int64_t>(scratch, count + 1),
                    nullptr,
                    {}};
  BackwardPlan& base = plan.base;
  base.tasks_at[0] = base.rows_at[0] = plan.spans_at[0] = 0;
  for (int64_t n = 0; n < count; ++n) {
    base.tasks_at[n + 1] = base.tasks_at[n] + t.sizes.key_heads * base.key_tasks(n);
    base.rows_at[n + 1] = base.rows_at[n] + a.sequences.data[n].q_len;
    plan.spans_at[n + 1] = plan.spans_at[n] + plan.spans(n);
  }
  const int64_t rows = base.rows_at[count] * t.sizes.heads, spans = plan.spans_at[count] * t.sizes.heads,
                tasks = base.tasks_at[count];
  base.delta = take<float>(scratch, rows);
  base.lse = take<float>(scratch, rows);
  base.lse_rest = take<float>(scratch, rows);
  if (wants_dq(a)) plan.dq = take<float>(scratch, spans * plan.span_floats());
  if (a.dscale) base.projection = take_zeros(scratch, rows);
  int32_t* turns = take<int32_t>(scratch, spans + tasks + 1);
  memset(turns, 0, static_cast<size_t>(spans + tasks + 1) * 4);
  plan.dq_turns = {turns + 1, turns};
  base.done = {turns + 1 + spans, turns};
  return plan;
}

template <class Tiles>
void attention_backward_tiles(const AttentionBackwardArgs& a) {
  Scratch scratch;
  const TileGradPlan plan = plan_tile_backward(a, scratch);
  run_backward(
      plan.base, [&](int64_t n, int64_t head) { row_deltas(plan.base, n, head); },
      [&](int64_t n, int64_t key_head, int64_t part) { backward_tile_task<Tiles>(plan, n, key_head, part); });
}
