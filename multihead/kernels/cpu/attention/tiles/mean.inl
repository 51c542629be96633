// The forward pass on tiles that also gives the mean of the weights over heads. A task has 32 rows and walks all heads:
// it keeps the exponentials of one head at a time, and makes weights of them once the head's sums are known.
#pragma once

#include "multihead/kernels/cpu/attention/fma/rows.inl"
#include "multihead/kernels/cpu/attention/mean_rows.inl"
#include "multihead/kernels/cpu/attention/tiles/forward.inl"
#include "multihead/kernels/cpu/attention/tiles/keys.inl"
#include "multihead/kernels/cpu/attention/tiles/softmax.inl"
#include "multihead/kernels/cpu/attention/tiles/step.inl"
#include "multihead/kernels/cpu/attention/tiles/write.inl"
#include "multihead/kernels/cpu/tile.inl"
#include "multihead/kernels/cpu/vector_math.inl"

// sums (keys, 32) += p · 2^(the reference of its time - the last one) / the row's sum.
inline void add_kept_weights(const Scores& scores, const TileQueryBlock& state, const KeptWeights& kept, float* sums) {
  for (int lane = 0; lane < kTileQueries; lane += kLanes) {
    HWY_ALIGN float ends[kLanes];
    for (int r = 0; r < kLanes; ++r) ends[r] = end_tile_row(scores, state, lane + r).factor / kMeanCut;
    const V end = hn::Load(f32, ends), last = hn::Load(f32, state.top + lane);
    for (int64_t n = 0; n < kept.count; ++n) {
      const KeptWeights::Step& step = kept.steps[n];
      const V factor = hn::Mul(end, exp2(hn::Sub(hn::Load(f32, step.top + lane), last)));
      const float* p = kept.p + step.first * kTileQueries + lane;
      float* to = sums + step.first * kTileQueries + lane;
#pragma GCC unroll 4
      for (int64_t at = 0; at < step.count * kTileQueries; at += kTileQueries)
        hn::Store(hn::MulAdd(hn::Load(f32, p + at), factor, hn::Load(f32, to + at)), f32, to + at);
    }
  }
}

template <class Tiles>
void mean_tile_rows(const AttentionMeanArgs& m, const TileSizes& t, const SharedKeys& shared, MeanRows rows) {
  const AttentionForwardArgs& a = m.call;
  const Sequence& s = a.sequences.data[rows.sequence];
  const int64_t keys = round_up(s.k_len, kMostStepKeys);
  Scratch scratch;
  TileRoom room = take<TileArrays>(scratch, 1)->room();
  KeptWeights kept{take<float>(scratch, keys * kTileQueries), take<KeptWeights::Step>(scratch, keys / 32)};
  room.kept = &kept;
  float* sums = take<float>(scratch, keys * kTileQueries);
  memset(sums, 0, static_cast<size_t>(keys * kScoreBytes));
  TileQueryBlock& state = *take<TileQueryBlock>(scratch, 1);
  state.words = take<uint32_t>(scratch, 2 * t.across_k * kTileFloats);
  state.o = take<float>(scratch, 4 * t.across_v * kTileFloats);
  const FlushSubnormals flush;
  const ForwardTileChunk<Tiles> run = forward_tile_chunk_for<Tiles>(t, s.k_len);
  for (int64_t head = 0; head < t.sizes.heads; ++head) {
    const TileTask task{rows.sequence, head / t.sizes.group, head, rows.first, rows.count};
    begin_tile_queries(a, task, state);
    const TileBlocks blocks{&state, 1, tile_rows(a.kv.v, s.batch, task.key_head, s.k_begin, s.k_len)};
    const int64_t low = state.q.low_min, end = state.q.high_max + 1;
    kept.count = 0;
    {
      Tiles tiles;
      for (int64_t chunk = end > 0 ? low / t.chunk : 0; chunk * t.chunk < end; ++chunk)
        run(a, t, tiles, room, chunk_of(a, t, shared, task, chunk, !Tiles::kWholeSums, nullptr), blocks);
    }
    add_kept_weights(a.scores, state, kept, sums);
    finish_tile_queries(a, t, s, state);
  }
  write_mean(m, rows, kTileQueries, sums);
}

// The sequences [begin, end) whose packed keys fit together, those of all their heads; one that does not fit stands
// alone.
inline int64_t mean_wave_end(const AttentionForwardArgs& a, const TileSizes& t, int64_t begin) {
  int64_t bytes = 0, end = begin;
  while (end < a.sequences.count) {
    bytes += t.sizes.key_heads * packed_head_bytes(t, a.sequences.data[end]);
    if (bytes > kPackedBytes && end > begin) break;
    ++end;
  }
  return end;
}

template <class Tiles>
void attention_mean_tiles(const AttentionMeanArgs& m) {
  const AttentionForwardArgs& a = m.call;
  const TileSizes t = tile_sizes(sizes_of(a.q, a.kv));
  const int64_t Tq = m.mean.size[1], blocks = (Tq + kTileQueries - 1) / kTileQueries;
  for (int64_t begin = 0; begin < a.sequences.count;) {
    const int64_t end = mean_wave_end(a, t, begin), heads = (end - begin) * t.sizes.key_heads;
    Scratch scratch;
    int64_t *places = take<int64_t>(scratch, 2 * (heads + 1)), *counts = places + heads + 1;
    places[0] = counts[0] = 0;
    for (int64_t n = 0; n < heads; ++n) {
      const Sequence& s = a.sequences.data[begin + n / t.sizes.key_heads];
      places[n + 1] = places[n] + packed_head_bytes(t, s);
      counts[n + 1] = counts[n] + (s.k_len + t.chunk - 1) / t.chunk;
    }
    const SharedKeys shared{take<char>(scratch, places[heads]), begin * t.sizes.key_heads, places, counts,
                            take<uint32_t>(scratch, counts[heads])};
    memset(shared.states, 0, static_cast<size_t>(counts[heads]) * 4);
    parallel_for((end - begin) * blocks, [&](int64_t task) {
      // Rows from the end: under a causal mask the long ones start first.
      const int64_t n = begin + task / blocks, first = (blocks - 1 - task % blocks) * kTileQueries,
                    last = smaller(first + kTileQueries, Tq);
      clear_mean(m, n, first, last);
      const int64_t count = smaller(last, a.sequences.data[n].q_len) - first;
      if (count > 0) mean_tile_rows<Tiles>(m, t, shared, {n, first, count});
    });
    begin = end;
  }
}
