// The fused forward pass on tiles, bf16: scores turned (keys down, 32 queries across), so that a row's maximum and sum are
// lanes of a vector, keys are read as they lie and weights come out as the pairs that the second product wants.

// Rows of one task: they share each chunk of keys while their words and outputs stay in L2. Four times as many where a task
// packs all the keys itself.
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

  int64_t per_query_head(int64_t head) const { return (sequences[head / sizes.sizes.key_heads].q_len + rows - 1) / rows; }

  TileTask place(int64_t task) const {
    int64_t low = begin, high = end;
    while (high - low > 1) {
      const int64_t middle = (low + high) / 2;
      (starts[middle - begin] <= task ? low : high) = middle;
    }
    const int64_t per = per_query_head(low), at = task - starts[low - begin];
    // Rows from the end: under a causal mask the long ones start first.
    const int64_t n = low / sizes.sizes.key_heads, key_head = low % sizes.sizes.key_heads, first = (per - 1 - at % per) * rows;
    return {n, key_head, key_head * sizes.sizes.group + at / per, first, smaller(rows, sequences[n].q_len - first)};
  }
};

// Chunks shared by the tasks of a wave of heads: chunk c of head h stands at packed + places[h], state at states + counts[h].
struct SharedKeys {
  char* packed = nullptr;  // null: every task packs for itself
  int64_t begin = 0;
  const int64_t *places = nullptr, *counts = nullptr;
  uint32_t* states = nullptr;
};

inline PackedKeys chunk_of(const AttentionForwardArgs& a, const TileSizes& t, const SharedKeys& shared, const TileTask& task, int64_t chunk,
                           char* own) {
  const Sequence& s = a.sequences.data[task.sequence];
  const int64_t first = chunk * t.chunk, count = smaller(t.chunk, s.k_len - first);
  const int64_t head = task.sequence * t.sizes.key_heads + task.key_head - shared.begin;
  char* room = shared.packed ? shared.packed + shared.places[head] + chunk * packed_bytes(t, t.chunk) : own;
  const PackedKeys keys = lay_out(t, first, count, room);
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
  for (int r = 0; r < kTileQueries; ++r) {
    block.factor[r] = units.query;
    q.offset[r] = 0;
    if (scores.similarity == Similarity::dot) continue;
    const float square = square_of(rows, r);
    if (scores.similarity == Similarity::cosine) block.factor[r] *= inverse_norm(square);
    else q.offset[r] = units.square * square;
  }
  limit_rows(scores, s, q);
  load_documents(scores, q);
}

inline void start_tile_queries(const TileSizes& t, TileQueryBlock& block) {
  memset(block.o, 0, static_cast<size_t>(4 * t.across_v * kTileBytes));
  for (int r = 0; r < kTileQueries; ++r) block.top[r] = kLowest, block.sum[r] = 0;
}

template <class Tiles, int KS, int VS, int NC>
void forward_tile_chunk(const AttentionForwardArgs& a, const TileSizes& t, Tiles& tiles, TileRoom& room, const PackedKeys& chunk,
                        const TileRows& v, bool first, TileQueryBlock& state) {
  using Pipe = ForwardPipe<Tiles, KS, VS, NC>;
  constexpr int64_t kStep = Pipe::kStepKeys;
  const QueryBlock& q = state.q;
  StepFinder<kStep> finder{a.scores, q, room.scores, larger(chunk.first, q.low_min / kStep * kStep),
                           smaller(chunk.first + chunk.count, q.high_max + 1)};
  const auto find = [&](TileStep& step) {
    if (!finder.find(step)) return false;
    step.k = chunk.keys(t, step.first);
    step.v = chunk.values(t, step.first);
    const int64_t group = (step.first - chunk.first) / 32;
    step.unclean = chunk.unclean[group] || (NC == 2 && chunk.unclean[group + 1]);
    return true;
  };
  const auto score = [&](TileStep& step, float* s) {
    score_step(a.scores, state, chunk.square + step.first - chunk.first, kStep, s, step);
  };
  const auto after = [&](const TileStep& step, const float* s, uint32_t* p) {
    if (a.scores.dropout_threshold > 0) drop_weights(a.scores, q, step.first, kStep, p);
    if (step.unclean) add_non_finite(v, step, s, state.o);
    if (room.kept) room.kept->keep(step, kStep, s);
  };
  Pipe{tiles, t, room, state}.run(first, find, score, after);
}

template <class Tiles>
using ForwardTileChunk = void (*)(const AttentionForwardArgs&, const TileSizes&, Tiles&, TileRoom&, const PackedKeys&, const TileRows&, bool,
                                  TileQueryBlock&);

template <class Tiles>
ForwardTileChunk<Tiles> forward_tile_chunk_for(const TileSizes& t) {
  // Whole sums know their widths at run time, and short steps leave out more of what rows cannot reach.
  if constexpr (Tiles::kWholeSums) {
    return forward_tile_chunk<Tiles, 0, 0, 1>;
  } else {
    if (t.across_k == 2 && t.across_v == 2) return forward_tile_chunk<Tiles, 2, 2, 2>;
    if (t.across_k == 4 && t.across_v == 4) return forward_tile_chunk<Tiles, 4, 4, 1>;
    return t.across_v <= 2 ? forward_tile_chunk<Tiles, 0, 0, 2> : forward_tile_chunk<Tiles, 0, 0, 1>;
  }
}

// Rows of o or dq, times `by` and narrowed, out of tiles[column / 32][even, odd][query / 16], whose rows are columns.
inline void write_tile_queries(const float* sums, const float (&by)[kTileQueries], const View& to, const Sequence& s, const QueryBlock& q) {
  const int64_t width = to.size[3];
  for (int half = 0; half < 2; ++half) {
    const __m512 factor = _mm512_load_ps(by + 16 * half);
    for (int64_t unit = 0; 32 * unit < width; ++unit) {
      const float *even = sums + (4 * unit + half) * kTileFloats, *odd = even + 2 * kTileFloats;
      __m512i words[16];
      for (int r = 0; r < 16; ++r)
        words[r] = round_pairs(_mm512_mul_ps(_mm512_load_ps(even + 16 * r), factor), _mm512_mul_ps(_mm512_load_ps(odd + 16 * r), factor));
      transpose_words(words);
      const __mmask32 mask = static_cast<__mmask32>((uint64_t{1} << smaller(32, width - 32 * unit)) - 1);
      for (int r = 0; r < 16 && 16 * half + r < q.count; ++r) {
        char* row = writable(to, s.batch, q.head, s.q_begin + q.first + 16 * half + r);
        _mm512_mask_storeu_epi16(reinterpret_cast<uint16_t*>(row) + 32 * unit, mask, words[r]);
      }
    }
  }
}

inline RowEnd end_tile_row(const Scores& scores, const TileQueryBlock& state, int r) {
  return end_row(state.sum[r] == 0 ? kNone : state.top[r], state.sum[r] / kMeanCut, scores.sink ? scores.sink + state.q.head : nullptr);
}

// Divides by the sums and writes o and lse.
inline void finish_tile_queries(const AttentionForwardArgs& a, const Sequence& s, const TileQueryBlock& state) {
  const QueryBlock& q = state.q;
  const float scale = a.scores.dropout_threshold > 0 ? dropout_scale(a.scores.dropout_threshold) : 1.0f;
  alignas(64) float factor[kTileQueries];
  for (int r = 0; r < kTileQueries; ++r) {
    const RowEnd end = end_tile_row(a.scores, state, r);
    factor[r] = end.factor * scale;
    if (r < q.count) store_lse(a.lse, s, q, r, end.lse);
  }
  write_tile_queries(state.o, factor, a.o, s, q);
}

inline TileRoom take_tile_room(Scratch& scratch) {
  TileRoom room;
  for (int n = 0; n < 2; ++n) {
    room.s[n] = take<float>(scratch, kMostStepKeys * kTileQueries);
    room.p[n] = take<uint32_t>(scratch, kSlots * kSlotWords);
    room.scores[n] = take_score_room(scratch, false);
  }
  return room;
}

// Rows [first, first + count) of a head, at most kTileQueries of them.
inline void begin_tile_queries(const AttentionForwardArgs& a, const TileSizes& t, const TileTask& rows, TileQueryBlock& state) {
  QueryBlock& q = state.q;
  q.sequence = rows.sequence, q.head = rows.head, q.first = rows.first;
  q.count = static_cast<int>(smaller(kTileQueries, rows.count));
  q.vectors = 2;
  load_tile_queries(a.q, a.scores, a.sequences.data[rows.sequence], state);
  start_tile_queries(t, state);
}

template <class Tiles>
void forward_tile_task(const AttentionForwardArgs& a, const TileSizes& t, const SharedKeys& shared, const TileTask& task) {
  const Sequence& s = a.sequences.data[task.sequence];
  Scratch scratch;
  TileRoom room = take_tile_room(scratch);
  const int64_t blocks = (task.count + kTileQueries - 1) / kTileQueries;
  TileQueryBlock* states = take<TileQueryBlock>(scratch, blocks);
  KeySpan all{INT64_MAX, 0};
  for (int64_t n = 0; n < blocks; ++n) {
    TileQueryBlock& state = states[n];
    state.words = take<uint32_t>(scratch, 2 * t.across_k * kTileFloats);
    state.o = take<float>(scratch, 4 * t.across_v * kTileFloats);
    const int64_t at = n * kTileQueries;
    begin_tile_queries(a, t, {task.sequence, task.key_head, task.head, task.first + at, task.count - at}, state);
    if (state.q.high_max < 0) continue;
    all.begin = smaller(all.begin, state.q.low_min);
    all.end = larger(all.end, state.q.high_max + 1);
  }
  char* own = shared.packed ? nullptr : take<char>(scratch, packed_bytes(t, smaller(t.chunk, s.k_len)));
  const ForwardTileChunk<Tiles> run = forward_tile_chunk_for<Tiles>(t);
  const TileRows v = tile_rows(a.kv.v, s.batch, task.key_head, s.k_begin, s.k_len);
  {
    Tiles tiles;
    for (int64_t chunk = all.end > 0 ? all.begin / t.chunk : 0; chunk * t.chunk < all.end; ++chunk) {
      const PackedKeys keys = chunk_of(a, t, shared, task, chunk, own);
      for (int64_t n = 0; n < blocks; ++n) run(a, t, tiles, room, keys, v, chunk * t.chunk <= states[n].q.low_min, states[n]);
    }
  }
  for (int64_t n = 0; n < blocks; ++n) finish_tile_queries(a, s, states[n]);
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
    for (int64_t n = 0; n < count; ++n) {
      const Sequence& s = a.sequences.data[(begin + n) / t.sizes.key_heads];
      starts[n + 1] = starts[n] + tasks.per_query_head(begin + n) * t.sizes.group;
      places[n + 1] = places[n] + packed_head_bytes(t, s);
      counts[n + 1] = counts[n] + (s.k_len + t.chunk - 1) / t.chunk;
    }
    SharedKeys shared{nullptr, begin, places, counts, nullptr};
    if (fits && starts[count] > count) {
      shared.packed = take<char>(scratch, places[count]);
      shared.states = take<uint32_t>(scratch, counts[count]);
      memset(shared.states, 0, static_cast<size_t>(counts[count]) * 4);
    }
    parallel_for(starts[count], [&](int64_t task) { forward_tile_task<Tiles>(a, t, shared, tasks.place(task)); });
    begin = end;
  }
}
