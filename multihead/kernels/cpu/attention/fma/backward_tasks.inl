// The tasks of the backward pass, and what they leave to be summed at the end.
#pragma once

#include "multihead/kernels/cpu/attention/fma/backward.inl"
#include "multihead/kernels/cpu/attention/fma/backward_bias.inl"
#include "multihead/kernels/cpu/attention/fma/backward_lse.inl"
#include "multihead/kernels/cpu/attention/fma/backward_tile.inl"
#include "multihead/kernels/cpu/attention/fma/block.inl"
#include "multihead/kernels/cpu/attention/fma/rows.inl"
#include "multihead/kernels/cpu/attention/order.inl"
#include "multihead/kernels/cpu/transpose.inl"
#include "multihead/kernels/cpu/vector_math.inl"

inline BackwardRoom take_backward_room(Scratch& scratch, const Scores& scores) {
  const auto tile = [&] { return take<float>(scratch, kBlockKeys * kMaxQueries); };
  float *p = tile(), *ds = tile(), *kept = tile();
  return {p, ds, kept, scores.dropout_threshold > 0 ? tile() : nullptr, take_score_room(scratch, scores.cap > 0)};
}

inline float* take_zeros(Scratch& scratch, int64_t count) {
  float* zeros = take<float>(scratch, count);
  memset(zeros, 0, static_cast<size_t>(count) * 4);
  return zeros;
}

inline BackwardKeys load_task_keys(const BackwardPlan& plan, int64_t n, int64_t key_head, int64_t part,
                                   Scratch& scratch) {
  const AttentionBackwardArgs& a = plan.a;
  const Sequence& s = a.sequences.data[n];
  BackwardKeys keys{};
  keys.first = part * plan.keys_per_task(n);
  keys.count = smaller(plan.keys_per_task(n), s.k_len - keys.first);
  const RowSource k = key_source(a.kv, a.scores, s, n, key_head), v = value_source(a.kv, s, n, key_head);
  keys.k =
      k.fetch(keys.first, keys.count, k.in_place() ? nullptr : take<float>(scratch, keys.count * plan.sizes.key_width));
  keys.v = v.fetch(keys.first, keys.count,
                   v.in_place() ? nullptr : take<float>(scratch, keys.count * plan.sizes.value_width));
  keys.dk = take_zeros(scratch, keys.count * round_up(plan.sizes.key_width, kLanes));
  keys.dv = take_zeros(scratch, keys.count * round_up(plan.sizes.value_width, kLanes));
  keys.column_sum = take_zeros(scratch, keys.count);
  return keys;
}

inline void write_keys(const BackwardTask& task, float* x) {
  const AttentionBackwardArgs& a = task.plan.a;
  const Sequence& s = a.sequences.data[task.n];
  const int64_t key_width = task.plan.sizes.key_width, value_width = task.plan.sizes.value_width;
  const int64_t first = s.k_begin + task.keys.first;
  const RowWalk dk_rows = a.dk ? walk(a.dk, s.batch, task.key_head, first) : RowWalk{};
  const RowWalk dv_rows = a.dv ? walk(a.dv, s.batch, task.key_head, first) : RowWalk{};
  const Similarity similarity = a.scores.similarity;
  const float scale = a.scores.scale[task.key_head * task.plan.sizes.group];
  for (int64_t j = 0; j < task.keys.count; ++j) {
    float* dk = task.keys.dk + j * round_up(key_width, kLanes);
    if (a.dk && similarity != Similarity::dot) {
      widen_row(a.kv.k.dtype, address(a.kv.k, s.batch, task.key_head, first + j), key_width, 1, x);
      finish_row(similarity, similarity == Similarity::cosine ? 1 : scale, task.keys.column_sum[j], x, key_width, dk);
    }
    if (a.dk) narrow_row(a.dk.dtype, dk, key_width, dk_rows.at(j), similarity == Similarity::dot ? scale : 1);
    if (a.dv) narrow_row(a.dv.dtype, task.keys.dv + j * round_up(value_width, kLanes), value_width, dv_rows.at(j));
  }
}

// Adds the task's sums by distance to those of its head, after the tasks before it.
inline bool pass_relative(const BackwardTask& task, int64_t head, int64_t distances) {
  const AttentionBackwardArgs& a = task.plan.a;
  if (!task.wait_for(task.before(true, false, true))) return false;
  const int64_t last_key = task.keys.first + task.keys.count - 1;
  const int64_t first_distance = a.sequences.data[task.n].position - last_key;
  float* to = a.drelative + head * a.scores.relative_count + first_distance - a.scores.relative_min;
  for (int64_t d = 0; d < distances; ++d) to[d] += task.relative[d];
  return true;
}

inline bool walk_head(BackwardTask& task, int64_t head, BackwardQueries& b, float* rows_room, const float* zeros) {
  const BackwardPlan& plan = task.plan;
  const int64_t q_len = plan.a.sequences.data[task.n].q_len, distances = q_len + task.keys.count - 1;
  if (task.relative) memset(task.relative, 0, static_cast<size_t>(larger(distances, 0) + kMaxQueries) * 4);
  // Where later keys are dropped, from the end: there every task has work, and none waits for one that is still at rows
  // the two do not share (Zen 4, two threads, 8 heads, T 1024, width 64, causal: 16.2 ms, from the front 26.6).
  const bool from_end = plan.a.scores.ahead != kUnbounded;
  for (int64_t walked = 0; walked < plan.blocks(task.n); ++walked) {
    const int64_t number = from_end ? plan.blocks(task.n) - 1 - walked : walked;
    place_block(plan, task.n, head, number, b);
    const KeyTasks tasks = tasks_of_rows(plan, b.q);
    if (task.part < tasks.begin || task.part >= tasks.end) continue;
    clear_block(plan, b);
    const bool any = backward_block(task, b, rows_room, zeros);
    if (wants_dq(plan.a) && !pass_dq(task, number, b, tasks, any, rows_room)) return false;
  }
  return !task.relative || q_len == 0 || task.keys.count == 0 || pass_relative(task, head, distances);
}

inline void backward_task(const BackwardPlan& plan, int64_t n, int64_t key_head, int64_t part) {
  const AttentionBackwardArgs& a = plan.a;
  const int64_t wide = larger(plan.sizes.key_width, plan.sizes.value_width) + 4;
  Scratch scratch;
  BackwardTask task{plan,
                    n,
                    key_head,
                    part,
                    load_task_keys(plan, n, key_head, part, scratch),
                    take_backward_room(scratch, a.scores),
                    nullptr};
  if (a.drelative) task.relative = take<float>(scratch, a.sequences.data[n].q_len + task.keys.count + kMaxQueries);
  BackwardQueries b = take_queries(scratch, plan.sizes);
  float *rows_room = take<float>(scratch, (kLanes + 1) * wide), *zeros = take_zeros(scratch, wide);

  if (a.dbias && !task.wait_for(task.before_bias())) return;
  for (int64_t h = 0; h < plan.sizes.group; ++h)
    if (!walk_head(task, key_head * plan.sizes.group + h, b, rows_room, zeros)) return;
  write_keys(task, rows_room);
  if (a.drelative && !task.wait_for(task.before(true, false, true))) return;
  plan.done.pass(plan.task(n, key_head, part));
}

inline void clear_bias(const View& dbias) {
  int64_t size[4];
  for (int axis = 0; axis < 4; ++axis)
    size[axis] = dbias.stride[axis] == 0 ? smaller(1, dbias.size[axis]) : dbias.size[axis];
  parallel_for(size[0] * size[1], [&](int64_t n) {
    float* head = static_cast<float*>(dbias.data) + n / size[1] * dbias.stride[0] + n % size[1] * dbias.stride[1];
    for (int64_t i = 0; i < size[2]; ++i) {
      float* row = head + i * dbias.stride[2];
      if (dbias.stride[3] == 1)
        memset(row, 0, static_cast<size_t>(size[3]) * 4);
      else
        for (int64_t j = 0; j < size[3]; ++j) row[j * dbias.stride[3]] = 0;
    }
  });
}

// dsink and dtau of a head: sums over its rows, in order.
inline void sum_rows(const BackwardPlan& plan, int64_t head) {
  const AttentionBackwardArgs& a = plan.a;
  double sink = 0, scale = 0;
  for (int64_t n = 0; n < a.sequences.count; ++n) {
    const Sequence& s = a.sequences.data[n];
    for (int64_t i = 0; i < s.q_len; ++i) {
      const int64_t row = plan.row(n, head) + i;
      const float lse = row_value(a.lse, s, head, i);
      if (a.dsink && lse != kNone) {
        const double units = static_cast<double>(a.scores.sink[head]) * kPerUnit - static_cast<double>(plan.lse[row]) -
                             static_cast<double>(plan.lse_rest[row]);
        sink -= static_cast<double>(exp2f(static_cast<float>(units))) * static_cast<double>(plan.delta[row]);
      }
      if (a.dscale) scale += static_cast<double>(plan.projection[row]);
    }
  }
  if (a.dsink) a.dsink[head] = static_cast<float>(sink);
  if (a.dscale) a.dscale[head] = static_cast<float>(scale);
}

inline BackwardPlan plan_backward(const AttentionBackwardArgs& a, Scratch& scratch) {
  const Sizes sizes = sizes_of(a.q, a.kv);
  const int64_t count = a.sequences.count;
  // The gradient of a dense bias may be shared by sequences: their tasks then take turns part by part, over the same
  // keys.
  const int64_t fewest_keys = a.scores.bias ? backward_keys(sizes) : kBlockKeys;
  BackwardPlan plan{a,
                    sizes,
                    backward_keys(sizes),
                    fewest_keys,
                    a.dbias && covers_bias(a),
                    take<int64_t>(scratch, count + 1),
                    take<int64_t>(scratch, count + 1),
                    take<int64_t>(scratch, count + 1),
                    nullptr,
                    nullptr,
                    nullptr,
                    nullptr,
                    nullptr,
                    {},
                    {}};
  plan.tasks_at[0] = plan.rows_at[0] = plan.blocks_at[0] = 0;
  for (int64_t n = 0; n < count; ++n) {
    plan.tasks_at[n + 1] = plan.tasks_at[n] + sizes.key_heads * plan.key_tasks(n);
    plan.rows_at[n + 1] = plan.rows_at[n] + a.sequences.data[n].q_len;
    plan.blocks_at[n + 1] = plan.blocks_at[n] + plan.blocks(n);
  }
  const int64_t rows = plan.rows_at[count] * sizes.heads, blocks = plan.blocks_at[count] * sizes.heads,
                tasks = plan.tasks_at[count];
  plan.delta = take<float>(scratch, rows);
  plan.lse = take<float>(scratch, rows);
  plan.lse_rest = take<float>(scratch, rows);
  if (wants_dq(a)) plan.dq = take<float>(scratch, blocks * (sizes.key_width + 1) * kMaxQueries);
  if (a.dscale) plan.projection = take_zeros(scratch, rows);
  int32_t* turns = take<int32_t>(scratch, blocks + tasks + 1);
  memset(turns, 0, static_cast<size_t>(blocks + tasks + 1) * 4);
  plan.dq_turns = {turns + 1, turns};
  plan.done = {turns + 1 + blocks, turns};
  return plan;
}

// prepare(n, head): delta and lse of its rows; run(n, key_head, part): a task. Rows whose keys several tasks share are
// prepared before all of them, those of one task by it, when it has them at hand.
template <class Prepare, class Run>
inline void run_backward(const BackwardPlan& plan, Prepare prepare, Run run) {
  const AttentionBackwardArgs& a = plan.a;
  const int64_t heads = plan.sizes.heads, group = plan.sizes.group, total = plan.tasks_at[a.sequences.count];
  if (a.dbias && !plan.writes_bias) clear_bias(a.dbias);
  if (a.drelative) memset(a.drelative, 0, static_cast<size_t>(heads * a.scores.relative_count) * 4);
  parallel_for(a.sequences.count * heads, [&](int64_t task) {
    if (plan.key_tasks(task / heads) > 1) prepare(task / heads, task % heads);
  });
  const bool whole_heads = total == a.sequences.count * plan.sizes.key_heads && !a.dbias && !a.drelative;
  for_tasks(total, whole_heads, [&](int64_t task) {
    const int64_t n = last_start(plan.tasks_at, a.sequences.count, task), at = task - plan.tasks_at[n],
                  parts = plan.key_tasks(n);
    try {
      for (int64_t h = 0; parts == 1 && h < group; ++h) prepare(n, at * group + h);
      run(n, at / parts, at % parts);
    } catch (...) {
      __atomic_store_n(plan.done.abandoned, 1, __ATOMIC_RELEASE);
      throw;
    }
  });
  if (a.dsink || a.dscale) parallel_for(heads, [&](int64_t head) { sum_rows(plan, head); });
}

inline void attention_backward(const AttentionBackwardArgs& a, Queue&) {
  Scratch scratch;
  const BackwardPlan plan = plan_backward(a, scratch);
  const auto prepare = [&](int64_t n, int64_t head) {
    row_deltas(plan, n, head);
    refine_lse(plan, n, head);
  };
  run_backward(plan, prepare,
               [&](int64_t n, int64_t key_head, int64_t part) { backward_task(plan, n, key_head, part); });
}
