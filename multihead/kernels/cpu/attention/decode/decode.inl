// Attention of few queries over a long cache: chunks of keys in parallel, then their partial results in ascending
// order.
#pragma once

#include "multihead/kernels/cpu/attention/fma/rows.inl"
#include "multihead/kernels/cpu/vector_math.inl"

// Each stands on the one before.
#include "multihead/kernels/cpu/attention/decode/rows.inl"

#include "multihead/kernels/cpu/attention/decode/dot.inl"

#include "multihead/kernels/cpu/attention/decode/add.inl"

#include "multihead/kernels/cpu/attention/decode/scores.inl"

#include "multihead/kernels/cpu/attention/decode/chunk.inl"

#include "multihead/kernels/cpu/attention/decode/short.inl"

#if defined(MH_PAIR_PRODUCTS)
#include "multihead/kernels/cpu/attention/decode/pairs.inl"

#include "multihead/kernels/cpu/attention/decode/bytes.inl"
#endif

namespace decode {

template <class T>
void write_row(const float* o, const RowShape& shape, T* to) {
  int64_t d = 0;
  for (; d + kLanes <= in_place(shape); d += kLanes) store_narrowed(hn::Load(f32, o + d), to + d);
  for (; d < shape.width; ++d) narrow(o[place_of(shape, d)], to + d);
}

// One row of o and lse from its partials, in ascending order of their keys; the sink joins last.
inline void join_partials(const DecodePlan& plan, const DecodeUnit& u, const float* partials, int64_t count,
                          int64_t r) {
  const int64_t width = plan.v.padded();
  const float* maxima = partials + u.rows * width + r;
  const float* sums = maxima + u.rows;
  const float sink = u.args->scores.sink ? u.args->scores.sink[u.row[r].head] : kNone;
  float top = sink;
  for (int64_t c = 0; c < count; ++c) {
    const float x = maxima[c * plan.partial];
    if (!(x <= top)) top = x;
  }
  HWY_ALIGN float o[kDecodeMostWidth + 2 * kLanes] = {};
  float sum = 0;
  for (int64_t c = 0; c < count && top != kNone; ++c) {
    if (maxima[c * plan.partial] == kNone) continue;
    const float weight = expf(maxima[c * plan.partial] - top);
    const float* part = partials + c * plan.partial + r * width;
    sum += weight * sums[c * plan.partial];
    for (int64_t d = 0; d < width; d += kLanes) {
      const V x = hn::MulAdd(hn::Load(f32, part + d), hn::Set(f32, weight), hn::Load(f32, o + d));
      hn::Store(x, f32, o + d);
    }
  }
  if (sink != kNone) sum += expf(sink - top);
  if (top != kNone) {
    for (int64_t d = 0; d < width; d += kLanes) {
      hn::Store(hn::Div(hn::Load(f32, o + d), hn::Set(f32, sum)), f32, o + d);
    }
  }

  const View& y = u.args->o;
  const View& lse = u.args->lse;
  const int64_t batch = u.sequence->batch, i = u.sequence->q_begin + u.row[r].query, h = u.row[r].head;
  const int64_t at = offset_of(y, batch, h, i, 0);
  if (y.dtype == DType::f32) write_row(o, plan.v, static_cast<float*>(y.data) + at);
  if (y.dtype == DType::bf16) write_row(o, plan.v, static_cast<bf16*>(y.data) + at);
  if (y.dtype == DType::f16) write_row(o, plan.v, static_cast<f16*>(y.data) + at);
  if (lse) static_cast<float*>(lse.data)[offset_of(lse, batch, h, i, 0)] = top == kNone ? kNone : top + logf(sum);
}

inline DecodePlan decode_plan(const AttentionForwardArgs& a) {
  DecodePlan plan;
  plan.k = row_shape(a.q.size[3], a.kv.k.dtype);
  plan.v = row_shape(a.o.size[3], a.kv.v.dtype);
  plan.dot = dot_run_of(a.kv.k.dtype);
  plan.add = add_run_of(a.kv.v.dtype);
  plan.finite = rows_finite_of(a.kv.v.dtype);
  plan.query = query_row;
  plan.marks = a.scores.q_documents || a.scores.dense_count > 0;
  plan.plain = is_plain(a);
#if defined(MH_PAIR_PRODUCTS)
  use_pairs(a, plan);
  use_bytes(a, plan);
#endif
  const int64_t group = a.q.size[1] / a.kv.k.size[1];
  int64_t rows = 0;
  for (int64_t b = 0; b < a.sequences.count; ++b) rows = larger(rows, group * a.sequences.data[b].q_len);
  plan.partial = round_up(rows * (plan.v.padded() + 2), 16);
  return plan;
}

// One key head of a sequence whose keys are one chunk.
inline void whole_unit(const DecodePlan& plan, const DecodeUnit& u) {
  if (short_unit(plan, u)) return;
  Scratch own;
  float* partial = own.take<float>(plan.partial);
  DecodeChunk(plan, u, own, partial).run({0, u.sequence->k_len});
  for (int64_t r = 0; r < u.rows; ++r) join_partials(plan, u, partial, 1, r);
}

// Units of a task where no sequence is cut: as many as have some 512 keys together, about as long as it takes to hand a
// task over.
inline int64_t units_per_task(const AttentionForwardArgs& a) {
  int64_t longest = 32;
  for (int64_t b = 0; b < a.sequences.count; ++b) longest = larger(longest, a.sequences.data[b].k_len);
  return larger(1, 512 / longest);
}

inline void attention_decode(const AttentionForwardArgs& a, Queue&) {
  const DecodePlan plan = decode_plan(a);
  const int64_t heads = a.kv.k.size[1], count = a.sequences.count;
  const auto chunks_of = [&](int64_t b) { return larger(1, decode_chunks(a.sequences.data[b].k_len)); };
  bool split = false;
  for (int64_t b = 0; b < count; ++b) split |= chunks_of(b) > 1;
  if (!split) {
    const int64_t units = count * heads, each = units_per_task(a);
    parallel_for((units + each - 1) / each, [&](int64_t task) {
      for (int64_t n = task * each; n < smaller(units, (task + 1) * each); ++n) {
        if (n % heads == 0) touch_sequence(plan, a, n / heads);
        if (a.sequences.data[n / heads].q_len > 0) whole_unit(plan, decode_unit(a, n / heads, n % heads));
      }
    });
    return;
  }

  Scratch scratch;
  // Task n of sequence b: chunk n % chunks of key head n / chunks. An empty sequence has one chunk, without keys.
  int64_t* first = scratch.take<int64_t>(count + 1);
  first[0] = 0;
  for (int64_t b = 0; b < count; ++b)
    first[b + 1] = first[b] + (a.sequences.data[b].q_len == 0 ? 0 : heads * chunks_of(b));
  float* partials = scratch.take<float>(first[count] * plan.partial);

  parallel_for(first[count], [&](int64_t task) {
    int64_t b = 0;
    for (int64_t step = count; step > 0; step = step / 2) {
      while (b + step < count && first[b + step] <= task) b += step;
    }
    const int64_t chunks = chunks_of(b), n = task - first[b];
    const int64_t k_len = a.sequences.data[b].k_len, keys = decode_chunk_keys(k_len), from = n % chunks * keys;
    const DecodeUnit u = decode_unit(a, b, n / chunks);
    if (chunks == 1) return whole_unit(plan, u);
    Scratch own;
    DecodeChunk(plan, u, own, partials + task * plan.partial).run({from, smaller(from + keys, k_len)});
  });
  parallel_for(count * heads, [&](int64_t n) {
    const int64_t b = n / heads, chunks = chunks_of(b);
    if (chunks == 1 || a.sequences.data[b].q_len == 0) return;
    const DecodeUnit u = decode_unit(a, b, n % heads);
    const float* from = partials + (first[b] + n % heads * chunks) * plan.partial;
    for (int64_t r = 0; r < u.rows; ++r) join_partials(plan, u, from, chunks, r);
  });
}

}  // namespace decode

using decode::attention_decode;
