// The backward pass on tiles, bf16: a task owns some keys of a key head and walks its queries, 128 at a time. Scores and dp are
// multiplied turned (keys down, queries across) for 64 keys × 32 queries while vectors make p and ds of the item before.

// Keys of a task: packed three ways, with f32 sums of dk and dv, they fill about half of a 2 MiB L2.
inline int64_t tile_backward_keys(const TileSizes& t) {
  const int64_t across = t.across_k + t.across_v;
  return across <= 8 ? 512 : across <= 16 ? 256 : 128;
}

struct TileGradPlan {
  BackwardPlan base;     // tasks, rows, delta, projection, turns of tasks
  TileSizes t;
  bool fast;             // no option but masks and biases: the vector work is interleaved
  int64_t* spans_at;     // per sequence: first span of queries (of one head)
  float* dq;             // (spans of (sequence, head)): kSpanBlocks × dq tiles, then row sums
  Turns dq_turns;        // per span of (sequence, head)

  int64_t spans(int64_t n) const { return (base.a.sequences.data[n].q_len + kSpanQueries - 1) / kSpanQueries; }
  int64_t span(int64_t n, int64_t head) const { return spans_at[n] * t.sizes.heads + head * spans(n); }
  int64_t dq_floats() const { return kSpanBlocks * 4 * t.across_k * kTileFloats; }
  int64_t span_floats() const { return dq_floats() + kSpanQueries; }
};

struct TileGradKeys {
  int64_t first, count, padded;
  uint32_t *k, *v;       // left operands, tiles[key / 16][column / 32]
  uint32_t* turned;      // left operand, keys turned: per 32 keys tiles[column / 32][even, odd]
  float *of_key, *into_dq;  // what the similarity takes of each key; what multiplies ds · k in dq
  float *dk, *dv;        // tiles[key / 16][column / 32][even, odd]
  float* column_sum;     // euclidean: Σ_i scale · ds
};

// The parts (tasks of keys) of a head that rows [first, first + count) can reach: they are neighbours, and add to dq in order.
struct PartRange {
  int64_t begin, end;
};
inline PartRange parts_of_rows(const TileGradPlan& plan, const TileGradBlock* blocks, int64_t count) {
  int64_t low = INT64_MAX, high = -1;
  for (int64_t n = 0; n < count; ++n) {
    const QueryBlock& q = blocks[n].state.q;
    if (q.high_max < 0) continue;
    low = smaller(low, q.low_min);
    high = larger(high, q.high_max);
  }
  if (high < 0) return {0, 1};
  const int64_t keys = plan.base.keys_per_task(blocks[0].state.q.sequence);
  return {low / keys, high / keys + 1};
}

inline TileGradKeys load_tile_keys(const TileGradPlan& plan, int64_t n, int64_t key_head, int64_t part, Scratch& scratch) {
  const AttentionBackwardArgs& a = plan.base.a;
  const TileSizes& t = plan.t;
  const Sequence& s = a.sequences.data[n];
  TileGradKeys keys{};
  keys.first = part * plan.base.keys_per_task(n);
  keys.count = smaller(plan.base.keys_per_task(n), s.k_len - keys.first);
  keys.padded = round_up(keys.count, kItemKeys);
  const TileRows k = tile_rows(a.kv.k, s.batch, key_head, s.k_begin + keys.first, keys.count);
  const TileRows v = tile_rows(a.kv.v, s.batch, key_head, s.k_begin + keys.first, keys.count);
  keys.k = take<uint32_t>(scratch, keys.padded * 16 * t.across_k);
  keys.v = take<uint32_t>(scratch, keys.padded * 16 * t.across_v);
  keys.turned = take<uint32_t>(scratch, keys.padded * 16 * t.across_k);
  pack_rows_left(k, keys.padded, keys.k);
  pack_rows_left(v, keys.padded, keys.v);
  for (int64_t at = 0; at < keys.padded; at += 32) pack_columns_left(k.from(at), keys.turned + at * 16 * t.across_k);
  keys.dk = take_zeros(scratch, keys.padded * 32 * t.across_k);
  keys.dv = take_zeros(scratch, keys.padded * 32 * t.across_v);
  keys.of_key = take<float>(scratch, keys.padded);
  keys.into_dq = take<float>(scratch, keys.padded);
  keys.column_sum = take_zeros(scratch, keys.padded);
  for (int64_t j = 0; j < keys.padded; ++j) {
    keys.of_key[j] = a.scores.similarity == Similarity::dot ? 0 : taken_of_key(a.scores.similarity, k, j);
    keys.into_dq[j] = a.scores.similarity == Similarity::cosine ? keys.of_key[j] : 1.0f;
  }
  return keys;
}

// Up to 128 queries of one head.
struct TileGradSpan {
  int64_t number, count;             // of blocks
  TileGradBlock* blocks;
  uint32_t *q_pairs, *d_o_pairs;     // right operands, tiles[block][column / 32][even, odd]
  float* dq;                         // this task's part
};

inline TileGradSpan take_span(Scratch& scratch, const TileGradPlan& plan) {
  const TileSizes& t = plan.t;
  TileGradSpan span{0, 0, take<TileGradBlock>(scratch, kSpanBlocks), take<uint32_t>(scratch, kSpanBlocks * t.across_k * kSlotWords),
                    take<uint32_t>(scratch, kSpanBlocks * t.across_v * kSlotWords), take<float>(scratch, plan.dq_floats())};
  for (int64_t b = 0; b < kSpanBlocks; ++b) {
    span.blocks[b].state.words = take<uint32_t>(scratch, t.across_k * kSlotWords);
    span.blocks[b].d_o_words = take<uint32_t>(scratch, t.across_v * kSlotWords);
    span.blocks[b].state.o = span.dq + b * 4 * t.across_k * kTileFloats;
  }
  return span;
}

inline void place_span(const TileGradPlan& plan, int64_t n, int64_t head, int64_t number, TileGradSpan& span) {
  const Sequence& s = plan.base.a.sequences.data[n];
  const int64_t rows = smaller(kSpanQueries, s.q_len - number * kSpanQueries);
  span.number = number;
  span.count = (rows + kTileQueries - 1) / kTileQueries;
  for (int64_t b = 0; b < span.count; ++b) {
    QueryBlock& q = span.blocks[b].state.q;
    q.sequence = n, q.head = head, q.first = number * kSpanQueries + b * kTileQueries, q.vectors = 2;
    q.count = static_cast<int>(smaller(kTileQueries, rows - b * kTileQueries));
    limit_rows(plan.base.a.scores, s, q);
  }
}

inline void ask_for_span(const TileGradPlan& plan, int64_t n, int64_t head, int64_t number) {
  const AttentionBackwardArgs& a = plan.base.a;
  const Sequence& s = a.sequences.data[n];
  const int64_t first = s.q_begin + number * kSpanQueries;
  const RowWalk q = walk(a.q, s.batch, head, first), d_o = walk(a.d_o, s.batch, head, first);
  for (int64_t r = 0; r < kSpanQueries; ++r) {
    ask_for(q.at(r), 2 * plan.t.sizes.key_width);
    ask_for(d_o.at(r), 2 * plan.t.sizes.value_width);
  }
}

inline void load_span(const TileGradPlan& plan, TileGradSpan& span) {
  const AttentionBackwardArgs& a = plan.base.a;
  const TileSizes& t = plan.t;
  for (int64_t b = 0; b < span.count; ++b) {
    TileGradBlock& block = span.blocks[b];
    const QueryBlock& q = block.state.q;
    const Sequence& s = a.sequences.data[q.sequence];
    const TileRows rows = tile_rows(a.q, s.batch, q.head, s.q_begin + q.first, q.count);
    const TileRows d_o = tile_rows(a.d_o, s.batch, q.head, s.q_begin + q.first, q.count);
    load_tile_queries(a.q, a.scores, s, block.state);
    pack_lanes_right(d_o, block.d_o_words);
    pack_pairs_right(rows, span.q_pairs + b * t.across_k * kSlotWords, kSlotWords);
    block.unclean = pack_pairs_right(d_o, span.d_o_pairs + b * t.across_v * kSlotWords, kSlotWords);
    const float scale = a.scores.scale[q.head];
    for (int r = 0; r < kTileQueries; ++r) {
      const float lse = r < q.count ? row_value(a.lse, s, q.head, q.first + r) : kNone;
      block.lse[r] = lse == kNone ? __builtin_inff() : lse * kLog2E;
      block.delta[r] = r < q.count ? plan.base.delta[plan.base.row(q.sequence, q.head) + q.first + r] : 0;
      block.row_sum[r] = 0;
      block.into_dk[r] = a.scores.similarity == Similarity::euclidean ? 2 * scale : scale;
      if (a.scores.similarity == Similarity::cosine) block.into_dk[r] *= inverse_norm(square_of(rows, r));
    }
  }
  memset(span.dq, 0, static_cast<size_t>(span.count * 4 * t.across_k * kTileBytes));
}

inline TileGradRoom take_grad_room(Scratch& scratch, const TileGradPlan& plan) {
  const Scores& scores = plan.base.a.scores;
  const auto item = [&] { return take<float>(scratch, kItemKeys * kTileQueries); };
  TileGradRoom room{};
  for (int n = 0; n < 2; ++n) {
    room.s[n] = item(), room.dp[n] = item();
    room.scores[n] = take_score_room(scratch, scores.cap > 0);
  }
  room.ds = item();
  if (!plan.fast) room.p = item(), room.factors = item();
  room.p_left = take<uint32_t>(scratch, kItemKeys / 16 * kSpanBlocks * kTileFloats);
  room.ds_left = take<uint32_t>(scratch, kItemKeys / 16 * kSpanBlocks * kTileFloats);
  room.ds_right = take<uint32_t>(scratch, kSpanKeys / 32 * kSpanBlocks * kSlotWords);
  return room;
}

// Σ ds along both axes, for the squares of the euclidean similarity.
inline void sum_item(TileGradBlock& block, const float* ds, float scale, float* column_sum) {
  for (int64_t key = 0; key < kItemKeys; ++key) {
    const __m512 low = _mm512_load_ps(ds + key * kTileQueries), high = _mm512_load_ps(ds + key * kTileQueries + 16);
    _mm512_store_ps(block.row_sum, _mm512_add_ps(_mm512_load_ps(block.row_sum), low));
    _mm512_store_ps(block.row_sum + 16, _mm512_add_ps(_mm512_load_ps(block.row_sum + 16), high));
    column_sum[key] += scale * _mm512_reduce_add_ps(_mm512_add_ps(low, high));
  }
}

// One span of queries against the keys of a task.
template <class Tiles, int KS, int VS>
struct GradPipe {
  struct Item {
    TileStep step;
    int64_t block;
  };

  Tiles& tiles;
  const TileGradPlan& plan;
  BackwardTask& task;
  TileGradKeys& keys;
  TileGradSpan& span;
  TileGradRoom& room;
  int64_t at = 0, next_block = 0;       // where find() goes on: keys of the task, block of the span
  int8_t blocks[kItemKeys / 32][kSpanBlocks] = {};  // of each group of 32 keys: blocks with gradients in the half span
  int64_t block_count[kItemKeys / 32] = {};
  int8_t groups[kSpanBlocks][kSpanKeys / 32] = {};  // of each block: groups of 32 keys with gradients in the span
  int64_t group_count[kSpanBlocks] = {};

  HWY_INLINE int64_t across_k() const { return KS ? KS : plan.t.across_k; }
  HWY_INLINE int64_t across_v() const { return VS ? VS : plan.t.across_v; }

  bool find(Item& item, const ScoreRoom& scores) {
    for (; at < keys.count; at += kItemKeys, next_block = 0) {
      for (; next_block < span.count; ++next_block) {
        TileStep& step = item.step;
        const QueryBlock& q = span.blocks[next_block].state.q;
        step.first = keys.first + at;
        step.keys = reachable(q, step.first, smaller(kItemKeys, keys.count - at));
        step.kind = classify_step(plan.base.a.scores, q, step.keys, scores);
        step.classified = step.keys.begin;
        step.room = &scores;
        if (step.kind.pairs == Pairs::none) continue;
        const AttentionBackwardArgs& a = plan.base.a;
        if (a.scores.bias) ask_for_bias(a.scores.bias, q, step.keys);
        if (a.dbias) ask_for_bias<true>(a.dbias, q, step.keys);
        item.block = next_block++;
        return true;
      }
    }
    return false;
  }

  // Scores and dp of an item, interleaved with what `beat` runs.
  template <class Beat>
  HWY_INLINE void multiply(const Item& item, float* s, float* dp, Beat& beat) {
    const int64_t key_tile = (item.step.first - keys.first) / 16;
    const TileGradBlock& block = span.blocks[item.block];
    const uint32_t *k = keys.k + key_tile * across_k() * kTileFloats, *v = keys.v + key_tile * across_v() * kTileFloats;
    constexpr int64_t kLower = 32 * kTileQueries;
    multiply_lanes<0, KS>(tiles, k, block.state.words, across_k(), s, beat);
    multiply_lanes<4 * KS, KS>(tiles, k + 2 * across_k() * kTileFloats, block.state.words, across_k(), s + kLower, beat);
    multiply_lanes<8 * KS, VS>(tiles, v, block.d_o_words, across_v(), dp, beat);
    multiply_lanes<8 * KS + 4 * VS, VS>(tiles, v + 2 * across_v() * kTileFloats, block.d_o_words, across_v(), dp + kLower, beat);
  }

  // As multiply, on tiles that keep whole sums: only keys that rows can reach. The others' scores become -inf, their dp is not read.
  HWY_INLINE void multiply_whole(const Item& item, float* s, float* dp) {
    const TileGradBlock& block = span.blocks[item.block];
    const Sizes& sizes = plan.t.sizes;
    for (int64_t group = item.step.first_group(); group < item.step.end_group(); ++group) {
      const int64_t key_tile = (item.step.first - keys.first) / 16 + 2 * group, out = group * 32 * kTileQueries;
      sum_lanes(tiles, keys.k + key_tile * across_k() * kTileFloats, block.state.words, sizes.key_width, s + out);
      sum_lanes(tiles, keys.v + key_tile * across_v() * kTileFloats, block.d_o_words, sizes.value_width, dp + out);
    }
  }

  HWY_NOINLINE void multiply_alone(const Item& item, float* s, float* dp) {
    if constexpr (Tiles::kWholeSums) {
      multiply_whole(item, s, dp);
    } else {
      Alone beat;
      multiply(item, s, dp, beat);
    }
  }

  // Products of `next`, if any, beside p and ds of `now`.
  template <bool kNext, bool kKeep>
  HWY_NOINLINE void step(const Item& next, float* s_next, float* dp_next, const Item& now, const float* s, const float* dp) {
    const TileGradBlock& block = span.blocks[now.block];
    GradSlices<kKeep> slices{_mm512_set1_ps(now.step.factor),
                             {_mm512_load_ps(block.lse), _mm512_load_ps(block.lse + 16)},
                             {_mm512_load_ps(block.delta), _mm512_load_ps(block.delta + 16)},
                             {live_lanes(_mm512_load_ps(block.lse)), live_lanes(_mm512_load_ps(block.lse + 16))},
                             s, dp, p_left(now), ds_left(now), ds_right(now), room.ds};
    int end = kItemSlices;
    if constexpr (Tiles::kWholeSums) {
      if constexpr (kNext) multiply_whole(next, s_next, dp_next);
      slices.done = static_cast<int>(16 * now.step.first_group());
      end = static_cast<int>(16 * now.step.end_group());
    } else if constexpr (kNext && KS != 0) {
      Beside<GradSlices<kKeep>, kItemSlices, 8 * (KS + VS)> beat{slices};
      multiply(next, s_next, dp_next, beat);
    } else if constexpr (kNext) {
      Paced<GradSlices<kKeep>, kItemSlices> beat(slices, static_cast<int>(8 * (across_k() + across_v())));
      multiply(next, s_next, dp_next, beat);
    }
    for (; slices.done < end; ++slices.done) slices.slice(slices.done);
  }

  uint32_t* p_left(const Item& item) const { return room.p_left + item.block * kTileFloats; }
  uint32_t* ds_left(const Item& item) const { return room.ds_left + item.block * kTileFloats; }
  int64_t group(const Item& item) const { return (item.step.first - keys.first) % kSpanKeys / 32; }
  uint32_t* ds_right(const Item& item) const { return room.ds_right + (group(item) * kSpanBlocks + item.block) * kSlotWords; }

  bool wants_biases() const { return plan.base.a.dbias || task.relative; }
  // The gradients of the biases take the item's ds.
  void add_biases(const Item& now, const ScoreRoom& scores) {
    const AttentionBackwardArgs& a = plan.base.a;
    const QueryBlock& q = span.blocks[now.block].state.q;
    const float* ds = room.ds + (now.step.keys.begin - now.step.first) * kTileQueries;
    if (a.dbias && plan.base.writes_bias) write_bias_gradient(a.dbias, q, now.step.keys, ds);
    else if (a.dbias) add_bias_gradient(a.dbias, q, now.step.keys, ds, scores.rows);
    if (task.relative)
      add_relative_bias(q, now.step.keys, a.sequences.data[task.n].position, keys.first + keys.count - 1, ds, task.relative);
  }

  // p and ds of `now` with every option.
  void weigh(const Item& now, const float* s, const float* dp, const ScoreRoom& scores) {
    const AttentionBackwardArgs& a = plan.base.a;
    TileGradBlock& block = span.blocks[now.block];
    const QueryBlock& q = block.state.q;
    const int64_t offset = now.step.first - keys.first;
    weigh_item(a.scores, block, now.step, s, dp, room);
    add_biases(now, scores);
    if (a.scores.cap > 0) {
      float* ds = room.ds + (now.step.keys.begin - now.step.first) * kTileQueries;
      const int64_t count = (now.step.keys.end - now.step.keys.begin) * kTileQueries;
      for (int64_t n = 0; n < count; n += 16)
        _mm512_storeu_ps(ds + n, times(_mm512_loadu_ps(ds + n), _mm512_loadu_ps(scores.slope + n)));
    }
    if (a.scores.similarity == Similarity::euclidean) sum_item(block, room.ds, a.scores.scale[q.head], keys.column_sum + offset);
    pack_item(block, room, keys.into_dq + offset, p_left(now), ds_left(now), ds_right(now));
  }

  // Rows of an item's block of d_o hold non-finite elements.
  void add_unclean(const Item& now, const float* s) {
    const AttentionBackwardArgs& a = plan.base.a;
    const QueryBlock& q = span.blocks[now.block].state.q;
    const Sequence& sequence = a.sequences.data[q.sequence];
    const TileRows d_o = tile_rows(a.d_o, sequence.batch, q.head, sequence.q_begin + q.first, q.count);
    add_non_finite_d_o(d_o, now.step, s, across_v(), keys.dv + (now.step.first - keys.first) * 32 * across_v());
  }

  // Everything of 64 keys has its p and ds: dv and dk take them.
  void finish_half(int64_t offset) {
    const AttentionBackwardArgs& a = plan.base.a;
    for (int64_t group = 0; group < kItemKeys / 32; ++group, offset += 32) {
      const int64_t at = group * 2 * kSpanBlocks * kTileFloats, count = block_count[group];
      if (count == 0) continue;
      if (a.dv) add_key_gradients(tiles, room.p_left + at, span.d_o_pairs, across_v(), blocks[group], count, keys.dv + offset * 32 * across_v());
      if (a.dk) add_key_gradients(tiles, room.ds_left + at, span.q_pairs, across_k(), blocks[group], count, keys.dk + offset * 32 * across_k());
      block_count[group] = 0;
    }
  }
  // Likewise 128 keys: dq takes them.
  void finish_span(int64_t offset) {
    const uint32_t* turned = keys.turned + offset * 16 * across_k();
    for (int64_t b = 0; b < span.count; ++b) {
      if (group_count[b] > 0 && wants_dq(plan.base.a))
        add_query_gradients(tiles, turned, room.ds_right, b, plan.t.sizes.key_width, groups[b], group_count[b], span.blocks[b].state.o);
      group_count[b] = 0;
    }
  }

  void run() {
    Item now{}, next{};
    if (!find(now, room.scores[0])) return;
    multiply_alone(now, room.s[0], room.dp[0]);
    int parity = 0;
    for (bool has_next = true; has_next; parity ^= 1, now = next) {
      float *s = room.s[parity], *dp = room.dp[parity], *s_next = room.s[parity ^ 1], *dp_next = room.dp[parity ^ 1];
      const TileGradBlock& block = span.blocks[now.block];
      const int64_t offset = now.step.first - keys.first;
      score_step(plan.base.a.scores, block.state, keys.of_key + offset, kItemKeys, s, now.step);
      has_next = find(next, room.scores[parity ^ 1]);
      if (!plan.fast) {
        weigh(now, s, dp, room.scores[parity]);
        if (has_next) multiply_alone(next, s_next, dp_next);
      } else if (wants_biases()) {
        if (has_next) step<true, true>(next, s_next, dp_next, now, s, dp);
        else step<false, true>(next, s_next, dp_next, now, s, dp);
        add_biases(now, room.scores[parity]);
      } else {
        if (has_next) step<true, false>(next, s_next, dp_next, now, s, dp);
        else step<false, false>(next, s_next, dp_next, now, s, dp);
      }
      if (block.unclean) add_unclean(now, s);
      for (int64_t n = now.step.first_group(); n < now.step.end_group(); ++n) {
        blocks[n][block_count[n]++] = static_cast<int8_t>(now.block);
        groups[now.block][group_count[now.block]++] = static_cast<int8_t>(group(now) + n);
      }
      const int64_t following = has_next ? next.step.first - keys.first : INT64_MAX;
      if (following != offset) finish_half(offset);
      if (following / kSpanKeys != offset / kSpanKeys) finish_span(offset / kSpanKeys * kSpanKeys);
    }
  }
};
