// How a forward call is cut into tasks: by sizes alone, so that results do not depend on the number of threads.
#pragma once

#include "multihead/kernels/cpu/attention/fma/block.inl"
#include "multihead/kernels/cpu/attention/fma/forward.inl"
#include "multihead/kernels/cpu/attention/fma/rows.inl"
#include "multihead/kernels/cpu/attention/order.inl"
#include "multihead/kernels/cpu/vector_math.inl"

// Few queries over many keys: the keys are cut too, and the parts joined in ascending order.
constexpr int64_t kSplitKeys = 8192, kSplitRows = 64;
inline int64_t key_chunks(const Sequence& s) {
  return s.q_len <= kSplitRows && s.k_len >= 2 * kSplitKeys ? (s.k_len + kSplitKeys - 1) / kSplitKeys : 1;
}

// Queries per task: several blocks share the widened keys, yet a head leaves four tasks of one size, or twice as often
// twice as many: odd ones leave a thread without work at the end (Zen 4, two threads, one head, width 64, full: T
// 128 1.29 times as fast as with tasks of 48, T 512 1.10 times as with 96).
inline int64_t rows_per_task(const Sizes& sizes, const Sequence& s) {
  if (key_chunks(s) > 1) return kSplitRows;
  constexpr int64_t kFewestRows = 32;
  int64_t tasks = 4;
  while (tasks > 1 && s.q_len < tasks * kFewestRows) tasks /= 2;
  while (s.q_len > tasks * blocks_per_task(sizes) * kMaxQueries) tasks *= 2;
  return larger(kLanes, round_up((s.q_len + tasks - 1) / tasks, kLanes));
}

struct TaskPlace {
  int64_t sequence, head, first, count, chunk;
};

// starts[n]: the first task of sequence n; starts[count]: how many there are.
struct TaskList {
  const Sequence* sequences;
  int64_t count, heads;
  Sizes sizes;
  int64_t* starts;

  int64_t per_head(int64_t n) const {
    const int64_t rows = rows_per_task(sizes, sequences[n]);
    return (sequences[n].q_len + rows - 1) / rows;
  }
  int64_t total() const { return starts[count]; }

  // Rows from the end: under a causal mask the long ones start first.
  TaskPlace place(int64_t task) const {
    const int64_t n = last_start(starts, count, task), chunks = key_chunks(sequences[n]),
                  rows = rows_per_task(sizes, sequences[n]);
    int64_t at = task - starts[n];
    const int64_t chunk = at % chunks;
    at /= chunks;
    const int64_t per = per_head(n), part = per - 1 - at % per;
    return {n, at / per, part * rows, smaller(rows, sequences[n].q_len - part * rows), chunk};
  }
};

inline TaskList list_tasks(const Sequences& sequences, const Sizes& sizes, Scratch& scratch) {
  TaskList list{sequences.data, sequences.count, sizes.heads, sizes, take<int64_t>(scratch, sequences.count + 1)};
  list.starts[0] = 0;
  for (int64_t n = 0; n < sequences.count; ++n)
    list.starts[n + 1] = list.starts[n] + list.per_head(n) * sizes.heads * key_chunks(sequences.data[n]);
  return list;
}

// What a chunk of keys left of the rows: outputs, maxima, sums, block by block.
inline int64_t part_floats(const Sizes& sizes) { return round_up(kSplitRows, kLanes) * (sizes.value_width + 2); }

inline void save_part(const ForwardState& state, int64_t value_width, float*& to) {
  const int64_t width = state.q.width();
  memcpy(to, state.o, static_cast<size_t>(value_width * width) * 4);
  to += value_width * width;
  memcpy(to, state.top, static_cast<size_t>(width) * 4);
  memcpy(to + width, state.sum, static_cast<size_t>(width) * 4);
  to += 2 * width;
}

// Adds a saved part to the state: both are brought to the larger maximum.
inline void join_part(ForwardState& state, int64_t value_width, const float*& from) {
  const int64_t width = state.q.width();
  const float *o = from, *top = from + value_width * width, *sum = top + width;
  from = sum + width;
  for (int64_t lane = 0; lane < width; lane += kLanes) {
    const V mine = hn::LoadU(f32, state.top + lane), its = hn::LoadU(f32, top + lane);
    const V both = hn::IfThenElse(hn::Gt(its, mine), its, mine);
    const V safe = hn::IfThenZeroElse(hn::Eq(both, hn::Set(f32, kNone)), both);
    const V my_share = exp2(hn::Sub(mine, safe)), its_share = exp2(hn::Sub(its, safe));
    hn::StoreU(both, f32, state.top + lane);
    const auto join = [&](float* at, const float* part) HWY_ATTR __attribute__((always_inline)) {
      const V scaled = hn::Mul(hn::LoadU(f32, part), its_share);
      hn::StoreU(hn::MulAdd(hn::LoadU(f32, at), my_share, scaled), f32, at);
    };
    join(state.sum + lane, sum + lane);
    for (int64_t d = 0; d < value_width; ++d) join(state.o + d * width + lane, o + d * width + lane);
  }
}

// Blocks of a task may be single vectors: 4 blocks of 3 of them, or the 64 rows of split keys in vectors of 4 lanes.
constexpr int64_t kMostBlocks = 16;

inline void forward_rows(const AttentionForwardArgs& a, const Sizes& sizes, int64_t number, int64_t head, int64_t first,
                         int64_t count) {
  const Sequence& s = a.sequences.data[number];
  Scratch scratch;
  const ForwardRoom room = take_forward_room(scratch, sizes, a.scores.dropout_threshold > 0);
  ForwardState states[kMostBlocks];
  const int64_t blocks = load_states(a, sizes, number, head, first, count, scratch, room, states);
  ask_for_rows<true>(a.o, s.batch, head, s.q_begin + first, count);
  gather(a, sizes, states, blocks, {0, INT64_MAX}, room);
  for (int64_t n = 0; n < blocks; ++n) finish_queries(a, s, states[n], sizes.value_width, room);
}

inline void forward_chunk(const AttentionForwardArgs& a, const Sizes& sizes, const TaskPlace& at, float* part) {
  Scratch scratch;
  const ForwardRoom room = take_forward_room(scratch, sizes, a.scores.dropout_threshold > 0);
  ForwardState states[kMostBlocks];
  const int64_t blocks = load_states(a, sizes, at.sequence, at.head, 0, at.count, scratch, room, states);
  gather(a, sizes, states, blocks, {at.chunk * kSplitKeys, (at.chunk + 1) * kSplitKeys}, room);
  for (int64_t n = 0; n < blocks; ++n) save_part(states[n], sizes.value_width, part);
}

inline void join_chunks(const AttentionForwardArgs& a, const Sizes& sizes, int64_t number, int64_t head,
                        const float* parts) {
  const Sequence& s = a.sequences.data[number];
  Scratch scratch;
  const ForwardRoom room = take_forward_room(scratch, sizes, false);
  ForwardState states[kMostBlocks];
  const int64_t blocks = load_states(a, sizes, number, head, 0, s.q_len, scratch, room, states);
  for (int64_t c = 0; c < key_chunks(s); ++c) {
    const float* from = parts + c * part_floats(sizes);
    for (int64_t n = 0; n < blocks; ++n) join_part(states[n], sizes.value_width, from);
  }
  for (int64_t n = 0; n < blocks; ++n) finish_queries(a, s, states[n], sizes.value_width, room);
}

void attention_forward(const AttentionForwardArgs& a, Queue&) {
  const Sizes sizes = sizes_of(a.q, a.kv);
  Scratch scratch;
  const TaskList list = list_tasks(a.sequences, sizes, scratch);
  // parts_at[n]: where the parts of sequence n begin, in units of one part.
  int64_t* parts_at = take<int64_t>(scratch, a.sequences.count + 1);
  parts_at[0] = 0;
  for (int64_t n = 0; n < a.sequences.count; ++n) {
    const int64_t chunks = key_chunks(a.sequences.data[n]);
    parts_at[n + 1] = parts_at[n] + (chunks > 1 ? chunks * sizes.heads : 0);
  }
  const int64_t part = part_floats(sizes), parts = parts_at[a.sequences.count];
  float* room = parts ? take<float>(scratch, parts * part) : nullptr;
  const auto parts_of = [&](int64_t n, int64_t head) {
    return room + (parts_at[n] + head * key_chunks(a.sequences.data[n])) * part;
  };

  for_tasks(list.total(), list.total() == a.sequences.count * sizes.heads, [&](int64_t task) {
    const TaskPlace at = list.place(task);
    if (key_chunks(a.sequences.data[at.sequence]) == 1) {
      forward_rows(a, sizes, at.sequence, at.head, at.first, at.count);
    } else {
      forward_chunk(a, sizes, at, parts_of(at.sequence, at.head) + at.chunk * part);
    }
  });
  if (!parts) return;
  parallel_for(a.sequences.count * sizes.heads, [&](int64_t task) {
    const int64_t n = task / sizes.heads, head = task % sizes.heads;
    if (key_chunks(a.sequences.data[n]) > 1 && a.sequences.data[n].q_len > 0)
      join_chunks(a, sizes, n, head, parts_of(n, head));
  });
}
