// The operands of the product on tiles: w packed in panels, rows of a where they lie or copied.
//
// A panel has 32 columns: for each 32 of k two tiles of 1 KiB, one for each 16 columns, of pairs along k. Rows, columns
// and k past the end are zeros.

constexpr int64_t kTileColumns = 32, kTileDepth = 32;
// Steps of a block: 32 KiB of a panel stay in the first cache while rows of a stream past.
constexpr int64_t kTileSteps = 16;
constexpr int64_t kTileStepWords = 2 * kTileFloats;

inline int64_t tile_steps(int64_t k) { return (k + kTileDepth - 1) / kTileDepth; }

// `steps` steps from k on of one panel of w.
inline void pack_tile_steps(const View& w, int64_t depth, int64_t k, int64_t steps, int64_t column, int64_t columns,
                            uint32_t* out) {
  for (int64_t s = 0; s < steps; ++s) {
    for (int64_t half = 0; half < 2; ++half) {
      uint32_t* tile = out + s * kTileStepWords + half * kTileFloats;
      const int64_t begin = k + s * kTileDepth, rest = smaller(kTileDepth, depth - begin);
      const int64_t first = column + 16 * half, count = larger(0, smaller(16, columns - 16 * half));
      if (rest < kTileDepth || count == 0) memset(tile, 0, kTileBytes);
      if (count == 0) continue;
      const bf16* at = static_cast<const bf16*>(w.data) + begin * w.stride[0] + first * w.stride[1];
      pack_words(Lines<bf16>{at, w.stride[0], w.stride[1]}, rest, count, 16, tile);
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
  parallel_for(count * blocks, [&](int64_t task) {
    const int64_t panel = task / blocks, step = task % blocks * kTileSteps;
    pack_tile_steps(w, panels.k, step * kTileDepth, smaller(kTileSteps, steps - step), (first + panel) * kTileColumns,
                    panels.columns(first + panel), out + panel * panels.words() + step * kTileStepWords);
  });
}

// Rows of a for the tiles: those before `whole` at `rows`, the others, padded with zeros to 32, at `last`.
struct TileLeft {
  const char* rows;
  int64_t apart;
  int64_t whole;
  const char* last;
  int64_t last_apart;

  const char* at(int64_t row) const { return row < whole ? rows + row * apart : last + (row - whole) * last_apart; }
  int64_t apart_at(int64_t row) const { return row < whole ? apart : last_apart; }
};

// Bytes between rows of a copy; a multiple of 4096 would put a tile's 16 rows into one set of the first cache.
inline int64_t copied_row_bytes(int64_t k) {
  const int64_t bytes = tile_steps(k) * kTileRow;
  return bytes % 4096 == 0 ? bytes + kTileRow : bytes;
}

// 32 rows by 32 of k, where rows lie side by side and k `along_k` elements apart: whole lines of memory are read, their
// even and odd places turned apart.
HWY_INLINE void turn_left_square(const bf16* from, int64_t along_k, char* out, int64_t apart) {
  __m512i even[16], odd[16];
#pragma GCC unroll 16
  for (int p = 0; p < 16; ++p) {
    const bf16* at = from + 2 * p * along_k;
    pair_rows(_mm512_loadu_si512(at), _mm512_loadu_si512(at + along_k), even[p], odd[p]);
  }
  transpose_words(even);
  transpose_words(odd);
#pragma GCC unroll 16
  for (int r = 0; r < 16; ++r) {
    _mm512_storeu_si512(out + 2 * r * apart, even[r]);
    _mm512_storeu_si512(out + (2 * r + 1) * apart, odd[r]);
  }
}

// Rows [first, first + 32) of a, zeros past the last one and past K.
inline void copy_left_rows(const View& a, int64_t first, char* out, int64_t apart) {
  const int64_t rows = smaller(32, a.size[0] - first), k = a.size[1], steps = tile_steps(k);
  const bf16* from = static_cast<const bf16*>(a.data) + first * a.stride[0];
  if (a.stride[1] == 1) {
    for (int64_t r = 0; r < 32; ++r) {
      const int64_t bytes = r < rows ? k * 2 : 0;
      if (bytes > 0) memcpy(out + r * apart, from + r * a.stride[0], static_cast<size_t>(bytes));
      memset(out + r * apart + bytes, 0, static_cast<size_t>(steps * kTileRow - bytes));
    }
    return;
  }
  for (int64_t s = 0; s < steps; ++s) {
    const int64_t begin = s * kTileDepth, depth = smaller(kTileDepth, k - begin);
    const bf16* at = from + begin * a.stride[1];
    if (a.stride[0] == 1 && rows == 32 && depth == kTileDepth) {
      turn_left_square(at, a.stride[1], out + s * kTileRow, apart);
      continue;
    }
    for (int64_t row = 0; row < 32; row += 16) {
      alignas(64) uint32_t words[kTileFloats] = {};
      const int64_t count = larger(0, smaller(16, rows - row));
      if (count > 0) pack_words(Lines<bf16>{at + row * a.stride[0], a.stride[1], a.stride[0]}, depth, count, 16, words);
      turn_rows(f32, words, 64, 16, apart / 4, reinterpret_cast<uint32_t*>(out + row * apart) + s * 16);
    }
  }
}

// Rows [first, first + count) of a: where they lie, or copied.
inline TileLeft tile_left(const View& a, int64_t first, int64_t count, Scratch& scratch) {
  const bool dense = a.stride[1] == 1 && a.size[1] % kTileDepth == 0 && (a.stride[0] > 0 || a.size[0] == 1);
  const int64_t copied = copied_row_bytes(a.size[1]), whole = dense ? count / 32 * 32 : 0;
  char* room = scratch.take<char>(round_up(count - whole, 32) * copied);
  for (int64_t row = whole; row < count; row += 32) copy_left_rows(a, first + row, room + (row - whole) * copied, copied);
  return {static_cast<const char*>(a.data) + first * a.stride[0] * 2, a.stride[0] * 2, whole, room, copied};
}
