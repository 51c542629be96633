// The matrix product: one loop nest for one row and for thousands, f32 and bf16.
//
// A task is a tile of up to kRowsPerTask rows and one panel of columns. An element's sum over k runs in ascending order
// with one multiply-add each inside blocks of kBlockDepth, and the blocks' sums are added in ascending order: how many
// rows and threads there are, and whether w came packed, decides nothing. bf16 is widened, which is exact, and summed
// as f32.

// Rows of one task: w is read once for these, and their sums (24 KB for 48 columns) stay in the first two caches.
constexpr int64_t kRowsPerTask = 128;
// Up to here bf16 is widened in registers: past it, widening a block once for all rows is cheaper.
constexpr int64_t kRowsWidenedInRegisters = 2 * kTileRows;

// Where the panels of w (K, N) lie.
struct Panels {
  int64_t n, steps;  // columns, and steps of the whole depth

  int64_t count() const { return (n + kPanelWidth - 1) / kPanelWidth; }
  int64_t columns(int64_t panel) const { return smaller(kPanelWidth, n - panel * kPanelWidth); }
  int64_t width(int64_t panel) const { return round_up(columns(panel), kLanes); }
  int64_t offset(int64_t panel) const { return panel * kPanelWidth * steps; }
  int64_t words() const { return count() == 0 ? 0 : offset(count() - 1) + width(count() - 1) * steps; }
};

// Panels [first, first + count) of w, each with its whole depth, one after the other.
template <class T>
void pack_panels(const View& w, int64_t k, const Panels& panels, int64_t first, int64_t count, uint32_t* out) {
  const int64_t blocks = (k + kBlockDepth - 1) / kBlockDepth;
  parallel_for(count * blocks, [&](int64_t task) {
    const int64_t panel = first + task / blocks, begin = task % blocks * kBlockDepth;
    const Lines<T> lines{static_cast<const T*>(w.data) + begin * w.stride[0] + panel * kPanelWidth * w.stride[1],
                         w.stride[0], w.stride[1]};
    const int64_t width = panels.width(panel);
    pack_words(lines, smaller(kBlockDepth, k - begin), panels.columns(panel), width,
               out + panels.offset(panel) - panels.offset(first) + steps_of<T>(begin) * width);
  });
}

void gemm_pack(const GemmPackArgs& args) {
  const int64_t k = args.w.size[0], n = args.w.size[1];
  const bool pairs = args.w.dtype == DType::bf16;
  const Panels panels{n, pairs ? steps_of<bf16>(k) : k};
  if (args.bytes) *args.bytes = panels.words() * 4;
  if (!args.packed) return;
  uint32_t* out = static_cast<uint32_t*>(args.packed);
  if (pairs) {
    pack_panels<bf16>(args.w, k, panels, 0, panels.count(), out);
  } else {
    pack_panels<float>(args.w, k, panels, 0, panels.count(), out);
  }
}

template <int R, int N>
HWY_INLINE void accumulate_words(V (&acc)[R][N], const float* HWY_RESTRICT a, const float* HWY_RESTRICT w,
                                 int64_t depth) {
  accumulate(acc, a, 1, R, w, N * kLanes, depth);
}

template <int R, int N>
HWY_INLINE void accumulate_step(V (&acc)[R][N], const float* a, const V (&columns)[N]) {
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) {
    const V x = hn::Set(f32, a[r]);
#pragma GCC unroll 8
    for (int n = 0; n < N; ++n) acc[r][n] = hn::MulAdd(x, columns[n], acc[r][n]);
  }
}

template <int R, int N>
HWY_INLINE void accumulate_words(V (&acc)[R][N], const float* HWY_RESTRICT a, const uint32_t* HWY_RESTRICT w,
                                 int64_t depth) {
  const hn::ScalableTag<uint32_t> u32;
  const auto upper = hn::Set(u32, 0xffff0000u);
  V columns[N];
  for (int64_t s = 0; s < depth / 2; ++s) {
    hn::Vec<hn::ScalableTag<uint32_t>> pairs[N];
#pragma GCC unroll 8
    for (int n = 0; n < N; ++n) pairs[n] = hn::LoadU(u32, w + (s * N + n) * kLanes);
#pragma GCC unroll 8
    for (int n = 0; n < N; ++n) columns[n] = hn::BitCast(f32, hn::ShiftLeft<16>(pairs[n]));
    accumulate_step(acc, a + 2 * s * R, columns);
#pragma GCC unroll 8
    for (int n = 0; n < N; ++n) columns[n] = hn::BitCast(f32, hn::And(pairs[n], upper));
    accumulate_step(acc, a + (2 * s + 1) * R, columns);
  }
  if (depth % 2 == 0) return;
#pragma GCC unroll 8
  for (int n = 0; n < N; ++n)
    columns[n] = hn::BitCast(f32, hn::ShiftLeft<16>(hn::LoadU(u32, w + (depth / 2 * N + n) * kLanes)));
  accumulate_step(acc, a + (depth - 1) * R, columns);
}

// c = (c +) Σ_k a[k · R + r] · w(k, column) for R rows and N vectors of columns, w in f32 or pairs of bf16.
template <class Word, int R, int N>
HWY_NOINLINE void multiply_tile(const float* HWY_RESTRICT a, const Word* HWY_RESTRICT w, int64_t depth, bool add,
                                float* HWY_RESTRICT c) {
  V acc[R][N];
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
    for (int n = 0; n < N; ++n) acc[r][n] = hn::Zero(f32);
  accumulate_words(acc, a, w, depth);
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
    for (int n = 0; n < N; ++n) {
      float* to = c + (r * N + n) * kLanes;
      hn::StoreU(add ? hn::Add(hn::LoadU(f32, to), acc[r][n]) : acc[r][n], f32, to);
    }
}

template <class Word>
using MultiplyTile = void (*)(const float*, const Word*, int64_t, bool, float*);

template <class Word, int R = kTileRows>
MultiplyTile<Word> multiply_tile_for(int64_t rows, int64_t vectors) {
  if constexpr (R > 1) {
    if (rows != R) return multiply_tile_for<Word, R - 1>(rows, vectors);
  }
  return vectors == 3   ? multiply_tile<Word, R, 3>
         : vectors == 2 ? multiply_tile<Word, R, 2>
                        : multiply_tile<Word, R, 1>;
}
static_assert(kTileVectors == 3);

// Rows [first, first + rows) of a as f32: block after block of k, in each the groups of kTileRows rows, in each group
// out[k · rows of the group + row].
struct PackedRows {
  const float* data;
  int64_t first, rows;

  const float* group(int64_t begin, int64_t depth, int64_t row) const { return data + begin * rows + row * depth; }
};

template <class T>
void pack_group(const Lines<T>& lines, int64_t depth, int64_t rows, float* out) {
  if constexpr (sizeof(T) == 4) {
    pack_words(lines, depth, rows, rows, reinterpret_cast<uint32_t*>(out));
  } else {
    uint32_t words[kTileRows * kBlockDepth / 2];
    pack_words(lines, depth, rows, rows, words);
    widen_words(words, depth, rows, out);
  }
}

template <class T>
void pack_rows_of(const GemmArgs& args, int64_t first, int64_t rows, float* out) {
  constexpr int64_t kRowsAtATime = 8 * kTileRows;
  const int64_t blocks = (args.k + kBlockDepth - 1) / kBlockDepth, parts = (rows + kRowsAtATime - 1) / kRowsAtATime;
  parallel_for(blocks * parts, [&](int64_t task) {
    const int64_t begin = task / parts * kBlockDepth, depth = smaller(kBlockDepth, args.k - begin);
    const int64_t part = task % parts * kRowsAtATime;
    for (int64_t row = part; row < smaller(rows, part + kRowsAtATime); row += kTileRows) {
      const T* at = static_cast<const T*>(args.a.data) + begin * args.a.stride[1] + (first + row) * args.a.stride[0];
      pack_group(Lines<T>{at, args.a.stride[1], args.a.stride[0]}, depth, smaller(kTileRows, rows - row),
                 out + begin * rows + row * depth);
    }
  });
}

// The words of w in use: panels [first, first + count) packed at `words`, or null where each task packs its own.
struct PackedPanels {
  Panels all;
  int64_t first, count;
  const uint32_t* words;
};

// One block of one panel, times all rows of a task.
template <class Word>
HWY_INLINE void multiply_block(const PackedRows& a, int64_t row, int64_t rows, int64_t begin, int64_t depth,
                               const Word* w, int64_t width, float* sums) {
  const MultiplyTile<Word> whole = multiply_tile_for<Word>(kTileRows, width / kLanes);
  int64_t r = 0;
  for (; r + kTileRows <= rows; r += kTileRows)
    whole(a.group(begin, depth, row + r), w, depth, begin > 0, sums + r * width);
  if (r == rows) return;
  multiply_tile_for<Word>(rows - r, width / kLanes)(a.group(begin, depth, row + r), w, depth, begin > 0,
                                                    sums + r * width);
}

// Rows [row, row + rows) of the packed ones times one panel, into y.
template <class T>
void multiply_panel(const GemmArgs& args, const PackedRows& a, int64_t row, int64_t rows, const PackedPanels& w,
                    int64_t panel) {
  Scratch scratch;
  const int64_t width = w.all.width(panel), column = panel * kPanelWidth, columns = w.all.columns(panel);
  float* sums = scratch.take<float>(kRowsPerTask * kPanelWidth);
  uint32_t* packed = w.words ? nullptr : scratch.take<uint32_t>(kBlockDepth * kPanelWidth);
  const bool widen = sizeof(T) == 2 && rows > kRowsWidenedInRegisters;
  float* widened = widen ? scratch.take<float>(kBlockDepth * kPanelWidth) : nullptr;
  if (args.k == 0) memset(sums, 0, static_cast<size_t>(rows * width) * 4);

  for (int64_t begin = 0; begin < args.k; begin += kBlockDepth) {
    const int64_t depth = smaller(kBlockDepth, args.k - begin);
    const uint32_t* words = packed;
    if (packed) {
      const T* at = static_cast<const T*>(args.w.data) + begin * args.w.stride[0] + column * args.w.stride[1];
      pack_words(Lines<T>{at, args.w.stride[0], args.w.stride[1]}, depth, columns, width, packed);
    } else {
      words = w.words + w.all.offset(panel) - w.all.offset(w.first) + steps_of<T>(begin) * width;
    }
    if (widen) widen_words(words, depth, width, widened);
    if (sizeof(T) == 2 && !widen) {
      multiply_block(a, row, rows, begin, depth, words, width, sums);
    } else {
      multiply_block(a, row, rows, begin, depth, widen ? widened : reinterpret_cast<const float*>(words), width, sums);
    }
  }
  if (args.y.dtype == DType::bf16) {
    finish_rows<bf16>(args, sums, width, a.first + row, rows, column, columns);
  } else {
    finish_rows<float>(args, sums, width, a.first + row, rows, column, columns);
  }
}

template <class T>
void multiply_panels(const GemmArgs& args, const PackedRows& a, const PackedPanels& w) {
  const int64_t tiles = (a.rows + kRowsPerTask - 1) / kRowsPerTask;
  const int64_t each = round_up((a.rows + tiles - 1) / tiles, kTileRows);
  parallel_for(tiles * w.count, [&](int64_t task) {
    const int64_t row = task / w.count * each;
    if (row < a.rows) multiply_panel<T>(args, a, row, smaller(each, a.rows - row), w, w.first + task % w.count);
  });
}

template <class T>
void gemm_of(const GemmArgs& args) {
  const int64_t m = args.a.size[0];
  const Panels panels{args.n, steps_of<T>(args.k)};
  const int64_t row_bytes = larger(1, args.k * 4), panel_bytes = larger(1, panels.steps * kPanelWidth * 4);
  const int64_t rows_at_a_time = larger(kRowsPerTask, kPackBytes / row_bytes / kRowsPerTask * kRowsPerTask);
  const bool pack = !args.packed && m > kRowsPerTask;
  const int64_t panels_at_a_time = pack ? larger(1, kPackBytes / panel_bytes) : panels.count();

  Scratch scratch;
  const bool as_it_is = sizeof(T) == 4 && m == 1 && args.a.stride[1] == 1;
  float* a = as_it_is ? static_cast<float*>(args.a.data) : scratch.take<float>(smaller(m, rows_at_a_time) * args.k);
  uint32_t* w = pack ? scratch.take<uint32_t>(panels_at_a_time * kPanelWidth * panels.steps) : nullptr;
  for (int64_t row = 0; row < m; row += rows_at_a_time) {
    const PackedRows rows{a, row, smaller(rows_at_a_time, m - row)};
    if (!as_it_is) pack_rows_of<T>(args, row, rows.rows, a);
    if (!args.packed && m <= kTileRows && args.w.stride[1] == 1) return stream_plain<T>(args, a, m);
    for (int64_t panel = 0; panel < panels.count(); panel += panels_at_a_time) {
      const int64_t count = smaller(panels_at_a_time, panels.count() - panel);
      if (pack) pack_panels<T>(args.w, args.k, panels, panel, count, w);
      multiply_panels<T>(args, rows, {panels, panel, count, pack ? w : static_cast<const uint32_t*>(args.packed)});
    }
  }
}

void gemm(const GemmArgs& args) {
  if (args.a.size[0] == 0 || args.n == 0) return;
  if (args.a.dtype == DType::bf16) {
    gemm_of<bf16>(args);
  } else {
    gemm_of<float>(args);
  }
}
