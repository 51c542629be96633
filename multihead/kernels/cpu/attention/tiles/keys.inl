// Keys and values of one key head as tiles, packed chunk by chunk, once for all tasks that read them.
#pragma once

#include "multihead/kernels/cpu/attention/fma/rows.inl"
#include "multihead/kernels/cpu/tile.inl"
#include "multihead/kernels/cpu/tile_pack.inl"
#include "multihead/kernels/cpu/vector_math.inl"

// Bytes of one chunk: with the queries' state it stays in a 2 MiB L2.
constexpr int64_t kChunkBytes = 1 << 20;
// Chunks of the heads in work at a time, shared by all threads; a head that alone needs more is packed by each task.
constexpr int64_t kPackedBytes = 16 << 20;

struct TileSizes {
  Sizes sizes;
  int64_t across_k, across_v;  // 32 columns each
  int64_t chunk;               // keys of a chunk, a multiple of 128
};

inline TileSizes tile_sizes(const Sizes& sizes) {
  TileSizes t{sizes, tiles_across(sizes.key_width), tiles_across(sizes.value_width), 0};
  t.chunk = larger(128, kChunkBytes / (64 * (t.across_k + t.across_v)) / 128 * 128);
  return t;
}

// A left operand of 32 rows: where its first tile is, and how many bytes on the next row, the tile beside and the one
// below are.
struct KeyTiles {
  const char* at;
  int64_t row, beside, below;
};

// Groups of 32 keys; there is an even number of them (one, where a sequence has no more), padded with zeros.
struct PackedKeys {
  int64_t first, count;
  uint32_t* k;       // left operand, tiles[key / 16][column / 32]
  uint32_t* v;       // left operand, turned: per group tiles[column / 32][even, odd]
  float* of_key;     // what the similarity takes of each key; not for dot
  uint8_t* unclean;  // per group: v has non-finite elements, which are zeros here
  TileRows rows;     // the keys where they lie
  int64_t in_place;  // of these the first are read there, and not packed

  KeyTiles keys(const TileSizes& t, int64_t key) const {
    const int64_t at = key - first;
    if (at < in_place)
      return {reinterpret_cast<const char*>(rows.at + at * rows.stride), 2 * rows.stride, kTileRow, 32 * rows.stride};
    return {reinterpret_cast<const char*>(k + at / 16 * t.across_k * kTileFloats), kTileRow, kTileBytes,
            t.across_k * kTileBytes};
  }
  bool any_unclean() const {
    uint8_t any = 0;
    for (int64_t g = 0; g < (count + 31) / 32; ++g) any |= unclean[g];
    return any != 0;
  }
  const uint32_t* values(const TileSizes& t, int64_t key) const {
    return v + (key - first) / 32 * 2 * t.across_v * kTileFloats;
  }
};

inline int64_t padded_keys(int64_t count) { return round_up(count, 64); }

inline int64_t packed_bytes(const TileSizes& t, int64_t count) {
  const int64_t keys = padded_keys(count);
  return keys * 64 * (t.across_k + t.across_v) + keys * 4 + round_up(keys / 32, 64);
}

inline TileRows tile_rows(const View& x, int64_t batch, int64_t head, int64_t first, int64_t count) {
  return {reinterpret_cast<const uint16_t*>(address(x, batch, head, first)), x.stride[2], count, x.size[3]};
}

// How many of the keys tiles can load from where they lie, 32 at a time: whole lines near each other (rows that are 4
// KiB apart fall into one set of the first cache), without columns that would need zeros.
inline int64_t keys_in_place(const TileRows& k) {
  const bool lines =
      reinterpret_cast<uintptr_t>(k.at) % kTileRow == 0 && 2 * k.stride % kTileRow == 0 && k.width % 32 == 0;
  return lines && k.stride > 0 && 2 * k.stride <= 512 ? k.count / 32 * 32 : 0;
}

// The parts of a chunk in `room`.
inline PackedKeys lay_out(const TileSizes& t, int64_t first, const TileRows& rows, bool in_place, char* room) {
  const int64_t keys = padded_keys(rows.count);
  char* v = room + keys * 64 * t.across_k;
  char* of_key = v + keys * 64 * t.across_v;
  return {first,
          rows.count,
          reinterpret_cast<uint32_t*>(room),
          reinterpret_cast<uint32_t*>(v),
          reinterpret_cast<float*>(of_key),
          reinterpret_cast<uint8_t*>(of_key + keys * 4),
          rows,
          in_place ? keys_in_place(rows) : 0};
}

inline float square_of(const TileRows& rows, int64_t row) {
  __m512 sum = _mm512_setzero_ps();
  for (int64_t c = 0; c < rows.width; c += 32) {
    const __m512i x = rows.load(row, c, rows.columns(c));
    const __m512 even = _mm512_castsi512_ps(_mm512_slli_epi32(x, 16));
    const __m512 odd = _mm512_castsi512_ps(_mm512_and_si512(x, _mm512_set1_epi32(static_cast<int>(0xffff0000u))));
    sum = _mm512_fmadd_ps(odd, odd, _mm512_fmadd_ps(even, even, sum));
  }
  return _mm512_reduce_add_ps(sum);
}

// |k|² (euclidean) or 1 / |k| (cosine).
inline float taken_of_key(Similarity similarity, const TileRows& k, int64_t row) {
  const float square = square_of(k, row);
  return similarity == Similarity::cosine ? inverse_norm(square) : square;
}

inline void pack_keys(const KeyValues& kv, Similarity similarity, const TileSizes& t, const Sequence& s, int64_t head,
                      const PackedKeys& to) {
  const TileRows& k = to.rows;
  const TileRows v = tile_rows(kv.v, s.batch, head, s.k_begin + to.first, to.count);
  const int64_t keys = s.k_len <= 32 ? 32 : padded_keys(to.count);
  pack_rows_left(k.from(to.in_place), keys - to.in_place, to.k + to.in_place * 16 * t.across_k);
  for (int64_t g = 0; g < keys / 32; ++g)
    to.unclean[g] = pack_columns_left(v.from(32 * g), to.v + g * 2 * t.across_v * kTileFloats);
  if (similarity == Similarity::dot) return;
  for (int64_t r = 0; r < keys; ++r) to.of_key[r] = taken_of_key(similarity, k, r);
}

// 0: nobody has begun, 1: being packed, 2: ready. Who comes first packs; the packer waits for nobody.
inline bool claim(uint32_t* state) {
  uint32_t free = 0;
  if (__atomic_compare_exchange_n(state, &free, 1u, false, __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE)) return true;
  for (int64_t spins = 0; __atomic_load_n(state, __ATOMIC_ACQUIRE) != 2; ++spins) {
    if (spins < 2000)
      _mm_pause();
    else
      sched_yield();
  }
  return false;
}
inline void publish(uint32_t* state) { __atomic_store_n(state, 2u, __ATOMIC_RELEASE); }
