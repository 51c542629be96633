// Gradients of the biases: ds summed over the axes along which a bias repeats.
#pragma once

#include "multihead/kernels/cpu/attention/fma/block.inl"
#include "multihead/kernels/cpu/transpose.inl"
#include "multihead/kernels/cpu/vector_math.inl"

// A bias that repeats along rows or keys: the tile is summed along them first, which costs less and rounds less than
// adding one number at a time. Lanes past the end hold 0.
inline void add_repeated_bias(const View& dbias, const QueryBlock& q, int64_t count, const float* ds, float* base) {
  const int64_t width = q.width();
  if (dbias.stride[2] == 0) {
    float all = 0;
    for (int64_t j = 0; j < count; ++j) {
      V sum = hn::LoadU(f32, ds + j * width);
      for (int n = 1; n < q.vectors; ++n) sum = hn::Add(sum, hn::LoadU(f32, ds + j * width + n * kLanes));
      const float of_key = hn::GetLane(hn::SumOfLanes(f32, sum));
      (dbias.stride[3] == 0 ? all : base[j * dbias.stride[3]]) += of_key;
    }
    if (dbias.stride[3] == 0) *base += all;
    return;
  }
  for (int n = 0; n < q.vectors; ++n) {
    V sum = hn::Zero(f32);
    for (int64_t j = 0; j < count; ++j) sum = hn::Add(sum, hn::LoadU(f32, ds + j * width + n * kLanes));
    HWY_ALIGN float of_row[kLanes];
    hn::Store(sum, f32, of_row);
    for (int r = 0; r < kLanes && n * kLanes + r < q.count; ++r) base[(n * kLanes + r) * dbias.stride[2]] += of_row[r];
  }
}

// Adds the tile of ds (keys, width) to dbias (B, H, Tq, Tk), whose strides are 0 along repeated axes. kWrite: to 0
// instead, whatever stands there.
template <bool kWrite = false>
void add_dense_bias(const View& dbias, const QueryBlock& q, KeySpan keys, const float* ds, float* rows_room) {
  const int64_t count = keys.end - keys.begin, width = q.width();
  float* base = static_cast<float*>(dbias.data) + q.sequence * dbias.stride[0] + q.head * dbias.stride[1] +
                q.first * dbias.stride[2] + keys.begin * dbias.stride[3];
  if (dbias.stride[2] == 0 || dbias.stride[3] == 0) return add_repeated_bias(dbias, q, count, ds, base);
  if (dbias.stride[3] != 1) {
    for (int64_t j = 0; j < count; ++j)
      for (int r = 0; r < q.count; ++r) base[r * dbias.stride[2] + j * dbias.stride[3]] += ds[j * width + r];
    return;
  }
  for (int n = 0; n < q.vectors; ++n) {
    float* rows[kLanes];
    for (int r = 0; r < kLanes; ++r) rows[r] = rows_room + r * kBlockKeys;
    columns_to_rows(ds + n * kLanes, width, count, hn::Set(f32, 1.0f), rows);
    for (int r = 0; r < kLanes && n * kLanes + r < q.count; ++r) {
      float* to = base + (n * kLanes + r) * dbias.stride[2];
      int64_t j = 0;
      for (; j + kLanes <= count; j += kLanes) {
        const V x = hn::LoadU(f32, rows[r] + j);
        hn::StoreU(kWrite ? x : hn::Add(hn::LoadU(f32, to + j), x), f32, to + j);
      }
      for (; j < count; ++j) to[j] = kWrite ? rows[r][j] : to[j] + rows[r][j];
    }
  }
}

// Whether tiles take every pair, and each has a place of its own in rows of dbias: they are then written, which saves
// clearing them first and reading them back.
inline bool covers_bias(const AttentionBackwardArgs& a) {
  const Scores& s = a.scores;
  const View& d = a.dbias;
  if (s.dense_count > 0 || s.k_documents || s.behind != kUnbounded || s.ahead != kUnbounded || s.has_prefix)
    return false;
  if (d.stride[2] == 0 || d.stride[3] != 1 || a.sequences.count != d.size[0]) return false;
  for (int axis = 0; axis < 2; ++axis)
    if (d.stride[axis] == 0 && d.size[axis] > 1) return false;
  for (int64_t n = 0; n < a.sequences.count; ++n)
    if (a.sequences.data[n].q_len != d.size[2] || a.sequences.data[n].k_len != d.size[3]) return false;
  return true;
}

// Adds the tile to `relative`, indexed by distance: entry 0 is the distance of position `first_position` from key
// `last_key`. It has room for a block of lanes past the last distance. Neighbouring keys add to places one float apart,
// and a load that overlaps a store still under way waits for it: eight keys in turn have sums of their own.
inline void add_relative_bias(const QueryBlock& q, KeySpan keys, int64_t first_position, int64_t last_key,
                              const float* ds, float* relative) {
  constexpr int64_t kApart = kBlockKeys + 2 * kMaxQueries;
  HWY_ALIGN float sums[8 * kApart];
  const int64_t width = q.width();
  for (int64_t first = keys.begin; first < keys.end; first += kBlockKeys) {
    const int64_t count = smaller(kBlockKeys, keys.end - first), room = round_up(count + width, kLanes);
    for (int64_t at = 0; at < room; at += kLanes)
      for (int64_t n = 0; n < 8; ++n) hn::StoreU(hn::Zero(f32), f32, sums + n * kApart + at);
    for (int64_t j = 0; j < count; ++j) {
      float* at = sums + j % 8 * kApart + count - 1 - j;
      for (int n = 0; n < q.vectors; ++n) {
        const V x = hn::LoadU(f32, ds + (first - keys.begin + j) * width + n * kLanes);
        hn::StoreU(hn::Add(hn::LoadU(f32, at + n * kLanes), x), f32, at + n * kLanes);
      }
    }
    float* to = relative + (q.position - first_position) + (last_key - (first + count - 1));
    for (int64_t d = 0; d < count - 1 + q.count; ++d) {
      float sum = 0;
      for (int64_t n = 0; n < 8; ++n) sum += sums[n * kApart + d];
      to[d] += sum;
    }
  }
}
