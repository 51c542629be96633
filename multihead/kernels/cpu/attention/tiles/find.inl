// Which steps of keys a block of queries takes on tiles: those that keep a pair.
#pragma once

#include "multihead/kernels/cpu/attention/fma/block.inl"
#include "multihead/kernels/cpu/attention/fma/forward.inl"
#include "multihead/kernels/cpu/attention/fma/scores.inl"
#include "multihead/kernels/cpu/attention/tiles/softmax.inl"
#include "multihead/kernels/cpu/vector_math.inl"

// Fetches the masks of the keys after `first` for the next blocks to come: 32 rows are more streams than hardware
// follows.
inline void prefetch_masks(const Scores& scores, const QueryBlock& q, int64_t first, int64_t end) {
  const int64_t ahead = first + 3 * kBlockKeys;
  if (ahead >= end) return;
  for (int m = 0; m < scores.dense_count; ++m) {
    const View& w = scores.dense[m].where;
    if (w.stride[3] != 1) continue;
    const char* at = static_cast<const char*>(w.data) + q.sequence * w.stride[0] + q.head * w.stride[1] +
                     q.first * w.stride[2] + ahead;
    for (int r = 0; r < q.count; ++r) _mm_prefetch(at + r * w.stride[2], _MM_HINT_T0);
  }
}

// As classify, a vector of 64 keys at a time where one dense mask lies with its keys side by side (4 × as fast).
inline TileKind classify_step(const Scores& scores, const QueryBlock& q, KeySpan keys, const ScoreRoom& room) {
  const DenseMask& mask = scores.dense[0];
  if (scores.dense_count != 1 || mask.where.stride[3] != 1 || keys.end - keys.begin != 64)
    return classify(scores, q, keys, room);
  TileKind kind;
  kind.banded = q.low_max > keys.begin || q.high_min < keys.end - 1;
  if (q.numbered) {
    const Pairs by = document_pairs(scores, q, keys);
    if (by == Pairs::none) return {.pairs = Pairs::none};
    kind.documents = by == Pairs::some;
  }
  const View& w = mask.where;
  const uint8_t* row = static_cast<const uint8_t*>(w.data) + q.sequence * w.stride[0] + q.head * w.stride[1] +
                       q.first * w.stride[2] + keys.begin;
  const uint64_t flip = mask.keep ? 0 : ~uint64_t{0};
  uint64_t any = 0, every = ~uint64_t{0};
  for (int r = 0; r < kTileQueries; ++r) {
    const uint8_t* at = row + (r < q.count ? r : 0) * w.stride[2];
    const __m512i bytes = _mm512_loadu_si512(at);
    const uint64_t bits = _mm512_test_epi8_mask(bytes, bytes) ^ flip;
    any |= bits, every &= bits;
    room.kept[r] = static_cast<uint32_t>(bits);
    room.kept[kMaxQueries + r] = static_cast<uint32_t>(bits >> 32);
  }
  if (any == 0) return {.pairs = Pairs::none};
  kind.dense = every != ~uint64_t{0};
  if (kind.banded || kind.documents || kind.dense) kind.pairs = Pairs::some;
  return kind;
}

// Finds steps of kStep keys that keep a pair, in ascending order up to `end`. Masks are read 64 keys at a time, into
// two rooms in turn: the step before may still need its own.
template <int64_t kStep>
struct StepFinder {
  const Scores& scores;
  const ScoreRoom (&rooms)[2];
  const QueryBlock* queries = nullptr;
  int64_t at = 0, end = 0;
  int turn = 0;
  int64_t block_end = 0;  // of the 64 keys whose masks were read last
  TileStep block{};

  void start(const QueryBlock& q, int64_t from, int64_t to) { queries = &q, at = from, end = to, block_end = 0; }

  bool find(TileStep& step) {
    const QueryBlock& q = *queries;
    for (; at < end; at += kStep) {
      if (at >= block_end) {
        const int64_t first = at / kBlockKeys * kBlockKeys;
        turn ^= 1;
        block.room = &rooms[turn];
        block.keys = reachable(q, first, smaller(kBlockKeys, end - first));
        prefetch_masks(scores, q, first, end);
        block.kind = classify_step(scores, q, block.keys, rooms[turn]);
        block_end = first + kBlockKeys;
      }
      if (block.kind.pairs == Pairs::none) continue;
      step = block;
      step.first = at;
      step.classified = block.keys.begin;
      step.keys = {larger(at, block.keys.begin), smaller(at + kStep, block.keys.end)};
      if (step.keys.begin >= step.keys.end) continue;
      if (scores.bias) ask_for_bias(scores.bias, q, step.keys);
      at += kStep;
      return true;
    }
    return false;
  }
};
