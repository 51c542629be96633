// The matrix product of bf16 on tiles: 32 × 32 sums in four tiles, whatever the number of rows; f32 goes to the rung
// below.
//
// w is packed in panels of 32 columns: for each 32 of k two tiles of 1 KiB, one for each 16 columns, of pairs along k.
// a is read where it lies if its rows are dense and K is a multiple of 32, else from a copy; rows, columns and k past
// the end are zeros. An element's sum is one chain of tile products over k: rows, threads and blocks decide nothing.
// Blocking is reasoned, not measured: TDPBF16PS takes 16 cycles, so that a step of four products leaves 64 cycles for
// two tiles of a out of the second cache (32 of its 50 bytes per cycle), two of w out of the first, and the work of a
// beat.

constexpr int64_t kTileColumns = 32, kTileDepth = 32;
// Steps of a block: 32 KiB of a panel stay in the first cache while rows of a stream past.
constexpr int64_t kTileSteps = 16;
constexpr int64_t kTileStepWords = 2 * kTileFloats;
// Rows of one task: w is read from the third cache once for these; with K = 2048 they fill half of the second.
constexpr int64_t kTileTaskRows = 256;

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

// Rows of a from `first` on, for the tiles: those before `whole` at `rows`, the others, padded with zeros to 32, at
// `last`.
struct TileLeft {
  int64_t first;
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
    // Both halves of a line of memory while it is near.
    for (int64_t row = 0; row < 32; row += 16) {
      alignas(64) uint32_t words[kTileFloats] = {};
      const int64_t begin = s * kTileDepth, count = larger(0, smaller(16, rows - row));
      const Lines<bf16> lines{from + row * a.stride[0] + begin * a.stride[1], a.stride[1], a.stride[0]};
      if (count > 0) pack_words(lines, smaller(kTileDepth, k - begin), count, 16, words);
      turn_rows(f32, words, 64, 16, apart / 4, reinterpret_cast<uint32_t*>(out + row * apart) + s * 16);
    }
  }
}

// One block of k, 32 rows or the upper 16: c (32 columns apart) = (c +) a · w; a beat a step beside the products.
template <bool Both, class Tiles, class Beat>
HWY_INLINE void multiply_tiles(Tiles& tiles, const char* a, int64_t apart, const uint32_t* w, int64_t steps, bool add,
                               float* c, Beat& beat) {
  constexpr int64_t kApart = kTileColumns * 4;
  float* below = c + 16 * kTileColumns;
  if (add) {
    tiles.template load<0>(c, kApart);
    tiles.template load<1>(c + 16, kApart);
    if constexpr (Both) tiles.template load<2>(below, kApart);
    if constexpr (Both) tiles.template load<3>(below + 16, kApart);
  } else {
    tiles.template zero<0>();
    tiles.template zero<1>();
    if constexpr (Both) tiles.template zero<2>();
    if constexpr (Both) tiles.template zero<3>();
  }
  for (int64_t s = 0; s < steps; ++s) {
    const uint32_t* pair = w + s * kTileStepWords;
    tiles.template stream<4>(a + s * kTileRow, apart);
    tiles.template load<6>(pair);
    tiles.template dot<0, 4, 6>();
    tiles.template load<7>(pair + kTileFloats);
    tiles.template dot<1, 4, 7>();
    if constexpr (Both) {
      tiles.template stream<5>(a + 16 * apart + s * kTileRow, apart);
      tiles.template dot<2, 5, 6>();
      tiles.template dot<3, 5, 7>();
    }
    beat();
  }
  tiles.template store<0>(c, kApart);
  tiles.template store<1>(c + 16, kApart);
  if constexpr (Both) tiles.template store<2>(below, kApart);
  if constexpr (Both) tiles.template store<3>(below + 16, kApart);
}

// What runs beside the tile products: fetches the block of w that comes next, and finishes the rows whose sums are
// whole.
template <class Y>
struct TileBeat {
  const Finish<Y>& finish;
  const char* next = nullptr;  // of w
  int64_t fetch = 0;           // bytes of it a step
  const float* sums = nullptr;
  int64_t row = 0, rows = 0, each = 2;

  HWY_INLINE void operator()() {
    for (int64_t at = 0; at < fetch; at += 64) __builtin_prefetch(next + at, 0, 2);
    next += fetch;
    finish_some(each);
  }
  HWY_INLINE void finish_some(int64_t most) {
    const int64_t count = smaller(most, rows);
    for (int64_t r = 0; r < count; ++r, sums += kTileColumns) finish.row(sums, row + r);
    row += count;
    rows -= count;
  }
  void take(const float* whole_sums, int64_t first, int64_t count, int64_t steps) {
    finish_some(rows);
    sums = whole_sums;
    row = first;
    rows = count;
    each = (count + steps - 1) / steps;
  }
};

// Rows [row, row + rows) times one panel; `packed` is the panel, or null where it is packed here block by block.
template <class Tiles, class Y>
void multiply_tile_panel(const GemmArgs& args, const TileLeft& left, int64_t row, int64_t rows,
                         const TilePanels& panels, int64_t panel, const uint32_t* packed) {
  Scratch scratch;
  const int64_t groups = (rows + 31) / 32, steps = tile_steps(args.k), column = panel * kTileColumns;
  float* sums = scratch.take<float>(groups * 32 * kTileColumns);
  uint32_t* room = packed ? nullptr : scratch.take<uint32_t>(kTileSteps * kTileStepWords);
  const Finish<Y> finish(args, column, panels.columns(panel));
  TileBeat<Y> beat{finish};
  if (steps == 0) {
    memset(sums, 0, static_cast<size_t>(rows * kTileColumns) * 4);
    beat.take(sums, left.first + row, rows, 1);
  }

  Tiles tiles;
  for (int64_t step = 0; step < steps; step += kTileSteps) {
    const int64_t some = smaller(kTileSteps, steps - step);
    const uint32_t* w = packed ? packed + step * kTileStepWords : room;
    if (room) pack_tile_steps(args.w, args.k, step * kTileDepth, some, column, panels.columns(panel), room);
    beat.next = reinterpret_cast<const char*>(w + some * kTileStepWords);
    beat.fetch = packed ? round_up(kTileStepWords * 4 / groups, 64) : 0;
    for (int64_t r = 0; r < rows; r += 32) {
      const char* a = left.at(row + r) + step * kTileRow;
      const int64_t apart = left.apart_at(row + r);
      float* c = sums + r * kTileColumns;
      if (rows - r > 16) {
        multiply_tiles<true>(tiles, a, apart, w, some, step > 0, c, beat);
      } else {
        multiply_tiles<false>(tiles, a, apart, w, some, step > 0, c, beat);
      }
      if (step + some == steps) beat.take(c, left.first + row + r, smaller(32, rows - r), some);
    }
  }
  beat.finish_some(beat.rows);
}

// Rows [first, first + count) of a: where they lie, or copied to `room`.
inline TileLeft tile_left(const View& a, bool dense, int64_t first, int64_t count, char* room) {
  const int64_t copied = copied_row_bytes(a.size[1]);
  const int64_t whole = dense ? count / 32 * 32 : 0;
  parallel_for((count - whole + 31) / 32, [&](int64_t group) {
    copy_left_rows(a, first + whole + group * 32, room + group * 32 * copied, copied);
  });
  const char* rows = static_cast<const char*>(a.data) + first * a.stride[0] * 2;
  return {first, rows, a.stride[0] * 2, whole, room, copied};
}

template <class Tiles>
void gemm_on_tiles(const GemmArgs& args) {
  const int64_t m = args.a.size[0];
  if (m == 0 || args.n == 0) return;
  const TilePanels panels{args.n, args.k};
  const bool dense = args.a.stride[1] == 1 && args.k % kTileDepth == 0 && (args.a.stride[0] > 0 || m == 1);
  const bool pack = !args.packed && m > kTileTaskRows;
  const int64_t copied = copied_row_bytes(args.k);
  const int64_t rows_at_a_time =
      dense ? round_up(m, kTileTaskRows) : larger(1, kPackBytes / larger(1, copied) / kTileTaskRows) * kTileTaskRows;
  const int64_t panels_at_a_time =
      pack ? larger(1, kPackBytes / larger(1, panels.words() * 4)) : larger(1, panels.count());

  Scratch scratch;
  char* room = scratch.take<char>((dense ? 32 : smaller(round_up(m, 32), rows_at_a_time)) * copied);
  uint32_t* w = pack ? scratch.take<uint32_t>(panels_at_a_time * panels.words()) : nullptr;
  for (int64_t row = 0; row < m; row += rows_at_a_time) {
    const int64_t rows = smaller(rows_at_a_time, m - row);
    const TileLeft left = tile_left(args.a, dense, row, rows, room);
    const int64_t tiles = (rows + kTileTaskRows - 1) / kTileTaskRows;
    const int64_t each = round_up((rows + tiles - 1) / tiles, 32);
    for (int64_t panel = 0; panel < panels.count(); panel += panels_at_a_time) {
      const int64_t count = smaller(panels_at_a_time, panels.count() - panel);
      if (pack) pack_tile_panels(args.w, panels, panel, count, w);
      const uint32_t* packed = pack ? w : static_cast<const uint32_t*>(args.packed);
      parallel_for(tiles * count, [&](int64_t task) {
        const int64_t first = task / count * each, n = task % count;
        if (first >= rows) return;
        const uint32_t* words = packed ? packed + n * panels.words() : nullptr;
        const auto multiply =
            args.y.dtype == DType::bf16 ? multiply_tile_panel<Tiles, bf16> : multiply_tile_panel<Tiles, float>;
        multiply(args, left, first, smaller(each, rows - first), panels, panel + n, words);
      });
    }
  }
}

// bf16 by tiles; f32 stays with the rung below.
template <class Tiles>
struct TileGemm {
  static inline void (*multiply_below)(const GemmArgs&) = nullptr;
  static inline void (*pack_below)(const GemmPackArgs&) = nullptr;

  static void multiply(const GemmArgs& args) {
    if (args.a.dtype == DType::bf16) return gemm_on_tiles<Tiles>(args);
    multiply_below(args);
  }
  static void pack(const GemmPackArgs& args) {
    if (args.w.dtype != DType::bf16) return pack_below(args);
    const TilePanels panels{args.w.size[1], args.w.size[0]};
    if (args.bytes) *args.bytes = panels.count() * panels.words() * 4;
    if (args.packed) pack_tile_panels(args.w, panels, 0, panels.count(), static_cast<uint32_t*>(args.packed));
  }

  static Table refine(Table table) {
    multiply_below = table.gemm.run;
    pack_below = table.gemm_pack.run;
    table.gemm.run = multiply;
    table.gemm_pack.run = pack;
    return table;
  }
};
