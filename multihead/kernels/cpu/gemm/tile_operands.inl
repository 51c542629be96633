// The operands of the product on tiles: w packed in panels, rows of a where they lie or copied.
//
// A panel has 32 columns: for each 32 of k two tiles of 1 KiB, one for each 16 columns, of pairs along k. Rows, columns
// and k past the end are zeros.
#pragma once

#include "multihead/kernels/cpu/tile.inl"
#include "multihead/kernels/cpu/tile_pack.inl"
#include "multihead/kernels/cpu/vector_math.inl"

constexpr int64_t kTileColumns = 32, kTileDepth = 32;
// Steps of a block: 32 KiB of a panel stay in the first cache while rows of a stream past.
constexpr int64_t kTileSteps = 16;
constexpr int64_t kTileStepWords = 2 * kTileFloats;

inline int64_t tile_steps(int64_t k) { return (k + kTileDepth - 1) / kTileDepth; }

// Up to 32 × 32 elements, `down` and `across` elements apart.
struct TileSquare {
  const bf16* at;
  int64_t down, across, rows, columns;

  TileSquare turned() const { return {at, across, down, columns, rows}; }
  TileRows lines() const { return {reinterpret_cast<const uint16_t*>(at), down, rows, columns}; }
};

// Elements that lie apart both ways, one by one.
inline TileSquare gather_square(const TileSquare& from, bf16* room) {
  for (int64_t r = 0; r < from.rows; ++r)
    for (int64_t c = 0; c < from.columns; ++c) room[32 * r + c] = from.at[r * from.down + c * from.across];
  return {room, 32, 1, from.rows, from.columns};
}

// Asks for the 32 lines `rows` rows further on: runs of one line, a row of memory apart, which the core does not
// foresee.
HWY_INLINE void ask_square(const TileRows& lines, int64_t rows) {
#pragma GCC unroll 8
  for (int64_t r = 0; r < 32; ++r) __builtin_prefetch(lines.at + (rows + r) * lines.stride, 0, 2);
}

// One step of a panel, w lying along its columns: `lines` are 32 of k, read whole.
inline void pair_lines(const TileRows& lines, uint32_t* out) {
  const __m512i first = _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11),
                last = _mm512_setr_epi64(4, 5, 12, 13, 6, 7, 14, 15);
  const bool whole = lines.whole(32, 0);
  const __mmask32 lanes = lines.columns(0);
  for (int64_t p = 0; p < 16; ++p) {
    const __m512i early = whole ? lines.load_whole(2 * p, 0) : lines.load(2 * p, 0, lanes);
    const __m512i late = whole ? lines.load_whole(2 * p + 1, 0) : lines.load(2 * p + 1, 0, lanes);
    const __m512i low = _mm512_unpacklo_epi16(early, late), high = _mm512_unpackhi_epi16(early, late);
    _mm512_store_si512(out + 16 * p, _mm512_permutex2var_epi64(low, first, high));
    _mm512_store_si512(out + kTileFloats + 16 * p, _mm512_permutex2var_epi64(low, last, high));
  }
}

// `steps` steps from k on of one panel of w.
inline void pack_tile_steps(const View& w, int64_t depth, int64_t k, int64_t steps, int64_t column, int64_t columns,
                            uint32_t* out) {
  for (int64_t s = 0; s < steps; ++s, k += kTileDepth, out += kTileStepWords) {
    const bf16* at = static_cast<const bf16*>(w.data) + k * w.stride[0] + column * w.stride[1];
    const TileSquare square{at, w.stride[0], w.stride[1], smaller(kTileDepth, depth - k), columns};
    if (square.across == 1) {
      ask_square(square.lines(), kTileDepth);
      pair_lines(square.lines(), out);
    } else if (square.down == 1) {
      pack_lanes_right(square.turned().lines(), out);
    } else {
      bf16 room[32 * 32];
      pair_lines(gather_square(square, room).lines(), out);
    }
  }
}

struct TilePanels {
  int64_t n, k;

  int64_t count() const { return (n + kTileColumns - 1) / kTileColumns; }
  int64_t columns(int64_t panel) const { return smaller(kTileColumns, n - panel * kTileColumns); }
  int64_t words() const { return tile_steps(k) * kTileStepWords; }  // of one panel
};

inline void pack_tile_panels(const View& w, const TilePanels& panels, int64_t first, int64_t count, uint32_t* out) {
  const int64_t steps = tile_steps(panels.k), blocks = (steps + kTileSteps - 1) / kTileSteps;
  parallel_near(count * blocks, [&](int64_t task) {
    const int64_t panel = task / blocks, step = task % blocks * kTileSteps;
    pack_tile_steps(w, panels.k, step * kTileDepth, smaller(kTileSteps, steps - step), (first + panel) * kTileColumns,
                    panels.columns(first + panel), out + panel * panels.words() + step * kTileStepWords);
  });
}

// Bytes between rows of a copy, an odd number of lines: a tile's rows then lie in as many sets of the first cache.
inline int64_t copied_row_bytes(int64_t k) { return (tile_steps(k) | 1) * kTileRow; }

// 32 rows by 32 of k, where rows lie side by side: `lines` are those of k. Whole lines of memory are read, their even
// and odd places turned apart.
HWY_INLINE void turn_left_square(const TileRows& lines, char* out, int64_t apart) {
  __m512i even[16], odd[16];
  if (lines.whole(32, 0)) {
#pragma GCC unroll 16
    for (int p = 0; p < 16; ++p) pair_rows(lines.load_whole(2 * p, 0), lines.load_whole(2 * p + 1, 0), even[p], odd[p]);
  } else {
    const __mmask32 lanes = lines.columns(0);
#pragma GCC unroll 16
    for (int p = 0; p < 16; ++p)
      pair_rows(lines.load(2 * p, 0, lanes), lines.load(2 * p + 1, 0, lanes), even[p], odd[p]);
  }
  transpose_words(even);
  transpose_words(odd);
#pragma GCC unroll 16
  for (int r = 0; r < 16; ++r) {
    _mm512_store_si512(out + 2 * r * apart, even[r]);
    _mm512_store_si512(out + (2 * r + 1) * apart, odd[r]);
  }
}

HWY_INLINE void copy_left_square(const TileRows& rows, char* out, int64_t apart) {
  const __mmask32 lanes = rows.columns(0);
  for (int64_t r = 0; r < 32; ++r) _mm512_store_si512(out + r * apart, rows.load(r, 0, lanes));
}

// Rows of a task for the tiles: where they lie if they fill tiles, else copied, with zeros past the last row and past
// K. Each square of 32 rows and 32 of k is brought near before it is read.
class TileLeft {
 public:
  TileLeft(const View& a, int64_t first, int64_t count, Scratch& scratch) : a_(a), first_(first), count_(count) {
    const bool dense = a.stride[1] == 1 && a.size[1] % kTileDepth == 0 && (a.stride[0] > 0 || a.size[0] == 1);
    whole_ = dense ? count / 32 * 32 : 0;
    copied_ = copied_row_bytes(a.size[1]);
    room_ = scratch.take<char>(round_up(count - whole_, 32) * copied_);
  }

  const char* at(int64_t row) const {
    return row < whole_ ? reinterpret_cast<const char*>(element(row, 0)) : room_ + (row - whole_) * copied_;
  }
  int64_t apart_at(int64_t row) const { return row < whole_ ? a_.stride[0] * 2 : copied_; }

  HWY_NOINLINE void bring(int64_t row, int64_t step) const {
    const int64_t k = step * kTileDepth;
    const TileSquare square{element(row, k), a_.stride[0], a_.stride[1], smaller(32, count_ - row),
                            smaller(kTileDepth, a_.size[1] - k)};
    if (row < whole_) return ask_square(square.lines(), 0);
    char* out = room_ + (row - whole_) * copied_ + step * kTileRow;
    if (square.across == 1) {
      copy_left_square(square.lines(), out, copied_);
    } else if (square.down == 1) {
      ask_square(square.turned().lines(), kTileDepth);
      turn_left_square(square.turned().lines(), out, copied_);
    } else {
      bf16 room[32 * 32];
      copy_left_square(gather_square(square, room).lines(), out, copied_);
    }
  }

 private:
  const bf16* element(int64_t row, int64_t k) const {
    return static_cast<const bf16*>(a_.data) + (first_ + row) * a_.stride[0] + k * a_.stride[1];
  }

  const View& a_;
  const int64_t first_, count_;
  int64_t whole_, copied_;
  char* room_;
};
