// The fused forward pass on tiles, bf16: scores turned (keys down, 32 queries across), so that a row's maximum and sum
// are lanes of a vector, keys are read as they lie and weights come out as the pairs that the second product wants.
#pragma once

#include "multihead/kernels/cpu/attention/fma/block.inl"
#include "multihead/kernels/cpu/attention/fma/rows.inl"
#include "multihead/kernels/cpu/attention/order.inl"
#include "multihead/kernels/cpu/attention/tiles/dropout.inl"
#include "multihead/kernels/cpu/attention/tiles/find.inl"
#include "multihead/kernels/cpu/attention/tiles/keys.inl"
#include "multihead/kernels/cpu/attention/tiles/scores.inl"
#include "multihead/kernels/cpu/attention/tiles/softmax.inl"
#include "multihead/kernels/cpu/attention/tiles/step.inl"
#include "multihead/kernels/cpu/attention/tiles/write.inl"
#include "multihead/kernels/cpu/tile.inl"
#include "multihead/kernels/cpu/tile_pack.inl"
#include "multihead/kernels/cpu/vector_math.inl"

// Rows of one task: they share each chunk of keys while their words and outputs stay in L2. Four times as many where a
// task packs all the keys itself.
inline int64_t tile_rows_per_task(const TileSizes& t) {
  return larger(32, smaller(256, 131072 / (64 * t.across_k + 128 * t.across_v) / 32 * 32));
}

struct TileTask {
  int64_t sequence, key_head, head, first, count;
};

// Tasks of the heads [begin, end), counted over sequences and key heads. starts[n]: the first task of head begin + n.
struct TileTasks {
  const Sequence* sequences;
  TileSizes sizes;
  int64_t begin, end, rows;
  int64_t* starts;

  int64_t per_query_head(int64_t head) const {
    return (sequences[head / sizes.sizes.key_heads].q_len + rows - 1) / rows;
  }

  TileTask place(int64_t task) const {
    const int64_t number = last_start(starts, end - begin, task), at = task - starts[number], of_all = begin + number;
    const int64_t per = per_query_head(of_all), n = of_all / sizes.sizes.key_heads,
                  key_head = of_all % sizes.sizes.key_heads;
    // Rows from the end: under a causal mask the long ones start first.
    const int64_t first = (per - 1 - at % per) * rows;
    return {n, key_head, key_head * sizes.sizes.group + at / per, first, smaller(rows, sequences[n].q_len - first)};
  }
};

// Chunks shared by the tasks of a wave of heads: chunk c of head h stands at packed + places[h], state at states +
// counts[h].
struct SharedKeys {
  char* packed = nullptr;  // null: every task packs for itself
  int64_t begin = 0;
  const int64_t *places = nullptr, *counts = nullptr;
  uint32_t* states = nullptr;
};

inline PackedKeys chunk_of(const AttentionForwardArgs& a, const TileSizes& t, const SharedKeys& shared,
                           const TileTask& task, int64_t chunk, bool in_place, char* own) {
  const Sequence& s = a.sequences.data[task.sequence];
  const int64_t first = chunk * t.chunk, count = smaller(t.chunk, s.k_len - first);
  const int64_t head = task.sequence * t.sizes.key_heads + task.key_head - shared.begin;
  char* room = shared.packed ? shared.packed + shared.places[head] + chunk * packed_bytes(t, t.chunk) : own;
  const PackedKeys keys =
      lay_out(t, first, tile_rows(a.kv.k, s.batch, task.key_head, s.k_begin + first, count), in_place, room);
  uint32_t* state = shared.packed ? shared.states + shared.counts[head] + chunk : nullptr;
  if (state && !claim(state)) return keys;
  pack_keys(a.kv, a.scores.similarity, t, s, task.key_head, keys);
  if (state) publish(state);
  return keys;
}

inline void load_tile_queries(const View& x, const Scores& scores, const Sequence& s, TileQueryBlock& block) {
  QueryBlock& q = block.q;
  const TileRows rows = tile_rows(x, s.batch, q.head, s.q_begin + q.first, q.count);
  pack_lanes_right(rows, block.words);
  const ScoreUnits units = units_of(scores, q.head);
  for (int r = 0; r < kTileQueries; ++r) block.factor[r] = units.query, q.offset[r] = 0;
  for (int r = 0; scores.similarity != Similarity::dot && r < kTileQueries; ++r) {
    const float square = square_of(rows, r);
    if (scores.similarity == Similarity::cosine)
      block.factor[r] *= inverse_norm(square);
    else
      q.offset[r] = units.square * square;
  }
  limit_rows(scores, s, q);
  load_documents(scores, q);
}

// Blocks of queries of a task, and the values they meet.
struct TileBlocks {
  TileQueryBlock* states;
  int64_t count;
  TileRows v;
};

// Streams a chunk of keys past every block.
template <class Tiles, int KS, int VS, int NC>
void forward_tile_chunk(const AttentionForwardArgs& a, const TileSizes& t, Tiles& tiles, TileRoom& room,
                        const PackedKeys& chunk, const TileBlocks& blocks) {
  using Pipe = ForwardPipe<Tiles, KS, VS, NC>;
  constexpr int64_t kStep = Pipe::kStepKeys;
  StepFinder<kStep> finder{a.scores, room.scores};
  int64_t n = -1;
  bool choose = false;
  const auto find = [&](TileStep& step) {
    while (n < 0 || !finder.find(step)) {
      if (++n == blocks.count) return false;
      const QueryBlock& q = blocks.states[n].q;
      finder.start(q, larger(chunk.first, q.low_min / kStep * kStep),
                   smaller(chunk.first + chunk.count, q.high_max + 1));
      choose = chunk.first <= q.low_min;
    }
    step.state = blocks.states + n;
    step.choose = choose;
    choose = false;
    for (int group = 0; group < NC; ++group) step.k[group] = chunk.keys(t, step.first + 32 * group);
    step.v = chunk.values(t, step.first);
    const int64_t group = (step.first - chunk.first) / 32;
    step.unclean = chunk.unclean[group] || (NC == 2 && chunk.unclean[group + 1]);
    return true;
  };
  const auto score = [&](TileStep& step, float* s) {
    score_step(a.scores, *step.state, chunk.of_key + step.first - chunk.first, kStep, s, step);
  };
  const auto after = [&](const TileStep& step, const float* s, uint32_t* p) {
    if (a.scores.dropout_threshold > 0) drop_weights(a.scores, step.state->q, step.first, kStep, p);
    if (step.unclean) add_non_finite(blocks.v, step, s, step.state->o);
    if (room.kept) room.kept->keep(step, kStep);
  };
  if (chunk.any_unclean())
    for (int64_t b = 0; b < blocks.count; ++b) clear_outputs(t, blocks.states[b]);
  Pipe{tiles, t, room}.run(find, score, after);
}

template <class Tiles>
using ForwardTileChunk = void (*)(const AttentionForwardArgs&, const TileSizes&, Tiles&, TileRoom&, const PackedKeys&,
                                  const TileBlocks&);

// Widths of whole tiles up to 128 have code of their own; of up to 32 keys only one group is taken.
template <class Tiles>
ForwardTileChunk<Tiles> forward_tile_chunk_for(const TileSizes& t, int64_t keys) {
  // Whole sums know their widths at run time, and short steps leave out more of what rows cannot reach.
  if constexpr (Tiles::kWholeSums) {
    return forward_tile_chunk<Tiles, 0, 0, 1>;
  } else {
    const bool few = keys <= 32;
    if (t.across_k == t.across_v) {
      switch (t.across_k) {
        case 1: return few ? forward_tile_chunk<Tiles, 1, 1, 1> : forward_tile_chunk<Tiles, 1, 1, 2>;
        case 2: return few ? forward_tile_chunk<Tiles, 2, 2, 1> : forward_tile_chunk<Tiles, 2, 2, 2>;
        case 3: return forward_tile_chunk<Tiles, 3, 3, 1>;
        case 4: return forward_tile_chunk<Tiles, 4, 4, 1>;
        default: break;
      }
    }
    return t.across_v <= 2 && !few ? forward_tile_chunk<Tiles, 0, 0, 2> : forward_tile_chunk<Tiles, 0, 0, 1>;
  }
}

// What every task needs, taken at once: a short head has no more work than a dozen small pieces cost.
struct TileArrays {
  alignas(64) float s[2][kMostStepKeys * kTileQueries];
  uint32_t p[2][kSlots * kSlotWords];
  float bias[2][kBlockKeys * kMaxQueries], rows[2][kLanes * kBlockKeys];
  uint32_t kept[2][2 * kMaxQueries];

  TileRoom room() {
    return {{s[0], s[1]}, {p[0], p[1]}, {{bias[0], rows[0], kept[0], nullptr}, {bias[1], rows[1], kept[1], nullptr}}};
  }
};

// Rows [first, first + count) of a head, at most kTileQueries of them.
inline void begin_tile_queries(const AttentionForwardArgs& a, const TileTask& rows, TileQueryBlock& state) {
  QueryBlock& q = state.q;
  q.sequence = rows.sequence, q.head = rows.head, q.first = rows.first;
  q.count = static_cast<int>(smaller(kTileQueries, rows.count));
  q.vectors = 2;
  load_tile_queries(a.q, a.scores, a.sequences.data[rows.sequence], state);
  state.fresh = true;
  for (int r = 0; r < kTileQueries; ++r) state.top[r] = kLowest, state.sum[r] = 0;
}

template <class Tiles>
void forward_tile_task(const AttentionForwardArgs& a, const TileSizes& t, const SharedKeys& shared,
                       const TileTask& task, Tiles& tiles) {
  const Sequence& s = a.sequences.data[task.sequence];
  Scratch scratch;
  TileRoom room = take<TileArrays>(scratch, 1)->room();
  const int64_t blocks = (task.count + kTileQueries - 1) / kTileQueries;
  TileQueryBlock* states = take<TileQueryBlock>(scratch, blocks);
  const int64_t words = 2 * t.across_k * kTileFloats, outputs = 4 * t.across_v * kTileFloats;
  uint32_t* all_words = take<uint32_t>(scratch, blocks * words);
  float* all_outputs = take<float>(scratch, blocks * outputs);
  ask_for_rows(a.q, s.batch, task.head, s.q_begin + task.first, task.count);
  KeySpan all{INT64_MAX, 0};
  for (int64_t n = 0; n < blocks; ++n) {
    TileQueryBlock& state = states[n];
    state.words = all_words + n * words;
    state.o = all_outputs + n * outputs;
    const int64_t at = n * kTileQueries;
    begin_tile_queries(a, {task.sequence, task.key_head, task.head, task.first + at, task.count - at}, state);
    if (state.q.high_max < 0) continue;
    all.begin = smaller(all.begin, state.q.low_min);
    all.end = larger(all.end, state.q.high_max + 1);
  }
  char* own = shared.packed ? nullptr : take<char>(scratch, packed_bytes(t, smaller(t.chunk, s.k_len)));
  const ForwardTileChunk<Tiles> run = forward_tile_chunk_for<Tiles>(t, s.k_len);
  const TileBlocks of_task{states, blocks, tile_rows(a.kv.v, s.batch, task.key_head, s.k_begin, s.k_len)};
  for (int64_t chunk = all.end > 0 ? all.begin / t.chunk : 0; chunk * t.chunk < all.end; ++chunk)
    run(a, t, tiles, room, chunk_of(a, t, shared, task, chunk, !Tiles::kWholeSums, own), of_task);
  for (int64_t n = 0; n < blocks; ++n) finish_tile_queries(a, t, s, states[n]);
}

// Short heads go several to a task where there are many: to open the tiles and to hand out a task take a tenth of the
// time of a head of 32 rows.
inline int64_t heads_at_once(int64_t tasks, int64_t most_pairs) {
  return larger(1, smaller(tasks / 32, smaller(8, 8192 / larger(1, most_pairs))));
}

inline int64_t packed_head_bytes(const TileSizes& t, const Sequence& s) {
  return s.k_len / t.chunk * packed_bytes(t, t.chunk) + packed_bytes(t, s.k_len % t.chunk);
}

// The heads [begin, end) whose packed keys fit together; one that does not fit alone stands alone.
inline int64_t wave_end(const AttentionForwardArgs& a, const TileSizes& t, int64_t begin, int64_t heads) {
  int64_t bytes = 0, end = begin;
  while (end < heads) {
    bytes += packed_head_bytes(t, a.sequences.data[end / t.sizes.key_heads]);
    if (bytes > kPackedBytes && end > begin) break;
    ++end;
  }
  return end;
}

template <class Tiles>
void attention_forward_tiles(const AttentionForwardArgs& a) {
  const TileSizes t = tile_sizes(sizes_of(a.q, a.kv));
  const int64_t heads = a.sequences.count * t.sizes.key_heads;
  for (int64_t begin = 0; begin < heads;) {
    const int64_t end = wave_end(a, t, begin, heads), count = end - begin;
    Scratch scratch;
    int64_t* starts = take<int64_t>(scratch, 3 * (count + 1));
    int64_t *places = starts + count + 1, *counts = places + count + 1;
    const bool fits = packed_head_bytes(t, a.sequences.data[begin / t.sizes.key_heads]) <= kPackedBytes;
    const TileTasks tasks{a.sequences.data, t, begin, end, (fits ? 1 : 4) * tile_rows_per_task(t), starts};
    starts[0] = places[0] = counts[0] = 0;
    int64_t most_pairs = 0;
    for (int64_t n = 0; n < count; ++n) {
      const Sequence& s = a.sequences.data[(begin + n) / t.sizes.key_heads];
      starts[n + 1] = starts[n] + tasks.per_query_head(begin + n) * t.sizes.group;
      places[n + 1] = places[n] + packed_head_bytes(t, s);
      counts[n + 1] = counts[n] + (s.k_len + t.chunk - 1) / t.chunk;
      most_pairs = larger(most_pairs, s.q_len * s.k_len);
    }
    SharedKeys shared{nullptr, begin, places, counts, nullptr};
    if (fits && starts[count] > count) {
      shared.packed = take<char>(scratch, places[count]);
      shared.states = take<uint32_t>(scratch, counts[count]);
      memset(shared.states, 0, static_cast<size_t>(counts[count]) * 4);
    }
    const int64_t total = starts[count], several = heads_at_once(total, most_pairs);
    for_tasks((total + several - 1) / several, total == count * t.sizes.group, [&](int64_t part) {
      const FlushSubnormals flush;
      Tiles tiles;
      for (int64_t task = part * several; task < smaller(total, (part + 1) * several); ++task)
        forward_tile_task(a, t, shared, tasks.place(task), tiles);
    });
    begin = end;
  }
}
