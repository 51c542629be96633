// The matrix product: one loop nest for one row and for thousands, f32 and bf16.
//
// A task is a tile of up to kRowsPerTask rows and one panel of columns. An element's sum over k runs in ascending order
// with one multiply-add each inside blocks of kBlockDepth, and the blocks' sums are added in ascending order: how many
// rows and threads there are, and whether w came packed, decides nothing. bf16 is widened, which is exact, and summed
// as f32; a rung with products of pairs (MH_PAIR_PRODUCTS) adds two of them at a time in f32.
#pragma once

#include "multihead/kernels/cpu/gemm/epilogue.inl"
#include "multihead/kernels/cpu/gemm/filled.inl"
#include "multihead/kernels/cpu/gemm/microkernel.inl"
#include "multihead/kernels/cpu/gemm/pack.inl"
#include "multihead/kernels/cpu/gemm/panels.inl"
#include "multihead/kernels/cpu/gemm/stream.inl"
#include "multihead/kernels/cpu/vector_math.inl"

// Rows of one task: w is read once for these, and their sums (24 KB for 48 columns) stay in the first two caches.
constexpr int64_t kRowsPerTask = 128;
// Past this depth a task has half as many.
constexpr int64_t kLongDepth = 4096;
// Up to here bf16 is widened in registers. With 32 of them always: half of w's bytes in the caches is worth more than
// the shifts (Zen 4, 512 … 2048: 0.93 of the FMA peak against 0.87). 16 do not hold the pairs beside the sums of a
// whole tile (0.42 against 0.84): there a block is widened once for all rows.
constexpr int64_t kRowsWidenedInRegisters = kTileRows == 8 ? kRowsPerTask : 2 * kTileRows;

// Rows [first, first + rows) of a, where they lie `apart` bytes apart; or, where apart is 0, packed: block after block
// of k, in each the groups of kTileRows rows, in each group the word of a step and row at out[step · rows of the group
// + row].
template <class T>
struct LeftRows {
  const RowWord<T>* data;
  int64_t first, rows, apart;

  const RowWord<T>* group(int64_t begin, int64_t depth, int64_t row) const {
    if (apart != 0)
      return reinterpret_cast<const RowWord<T>*>(reinterpret_cast<const char*>(data + row_steps<T>(begin)) +
                                                 row * apart);
    return data + row_steps<T>(begin) * rows + row * row_steps<T>(depth);
  }
};

// Up to kTileRows rows.
template <class T>
void pack_group(const Lines<T>& lines, int64_t depth, int64_t rows, RowWord<T>* out) {
  if constexpr (sizeof(T) == 2 && RowWords<T>::kDepth == 1) {
    uint32_t words[kTileRows * kBlockDepth / 2];
    pack_words(lines, depth, rows, rows, words);
    widen_words(words, depth, rows, out);
  } else {
    pack_words(lines, depth, rows, rows, reinterpret_cast<uint32_t*>(out));
  }
}

template <class T>
void pack_rows_of(const GemmArgs& args, int64_t first, int64_t rows, RowWord<T>* out) {
  constexpr int64_t kRowsAtATime = 8 * kTileRows;
  constexpr bool kAsTheyAre = sizeof(T) == 4 || RowWords<T>::kDepth == 2;
  const int64_t blocks = (args.k + kBlockDepth - 1) / kBlockDepth, parts = (rows + kRowsAtATime - 1) / kRowsAtATime;
  parallel_near(parts * blocks, [&](int64_t task) {
    const int64_t begin = task % blocks * kBlockDepth, depth = smaller(kBlockDepth, args.k - begin);
    const int64_t part = task / blocks * kRowsAtATime, end = smaller(rows, part + kRowsAtATime);
    const T* at = static_cast<const T*>(args.a.data) + begin * args.a.stride[1] + first * args.a.stride[0];
    const Lines<T> lines{at, args.a.stride[1], args.a.stride[0]};
    RowWord<T>* to = out + row_steps<T>(begin) * rows;
    int64_t row = part;
    if constexpr (kAsTheyAre) {
      const int64_t groups = args.a.stride[0] == 1 ? (end - part) / kTileRows : 0;
      pack_column_groups(Lines<T>{lines(0, part), args.a.stride[1], 1}, depth, groups,
                         reinterpret_cast<uint32_t*>(to + part * row_steps<T>(depth)));
      row += groups * kTileRows;
    }
    for (; row < end; row += kTileRows)
      pack_group(Lines<T>{lines(0, row), args.a.stride[1], args.a.stride[0]}, depth, smaller(kTileRows, end - row),
                 to + row * row_steps<T>(depth));
  });
}

// The words of w in use: panels [first, first + count) packed at `words`, or null where each task packs its own.
struct PackedPanels {
  Panels all;
  int64_t first, count;
  const uint32_t* words;
};

// One block of one panel, times all rows of a task: done(r, count) after each group of rows.
template <class T, class Word, class Done>
HWY_INLINE void multiply_block(const LeftRows<T>& a, int64_t row, int64_t rows, int64_t begin, int64_t depth,
                               const Word* w, int64_t width, float* sums, Done&& done) {
  for (int64_t r = 0; r < rows; r += kTileRows) {
    const int64_t count = smaller(kTileRows, rows - r);
    multiply_tile_for<RowWord<T>, Word>(count, width / kLanes)(a.group(begin, depth, row + r), a.apart, w, depth,
                                                               begin > 0, sums + r * width);
    done(r, count);
  }
}

// Brings columns [column, column + columns) of rows of y near; kWrite: to write them.
template <bool kWrite>
HWY_INLINE void ask_rows(const View& y, int64_t row, int64_t rows, int64_t column, int64_t columns) {
  const int64_t size = y.dtype == DType::bf16 ? 2 : 4;
  for (int64_t r = row; r < row + rows; ++r) {
    const char* at = static_cast<const char*>(y.data) + (r * y.stride[0] + column) * size;
    for (int64_t byte = 0; byte < columns * size; byte += 64) __builtin_prefetch(at + byte, kWrite);
  }
}

// Rows [row, row + rows) of the packed ones times one panel, into y.
template <class T>
void multiply_panel(const GemmArgs& args, const LeftRows<T>& a, int64_t row, int64_t rows, const PackedPanels& w,
                    int64_t panel) {
  Scratch scratch;
  const int64_t width = w.all.width(panel), column = w.all.column(panel), columns = w.all.columns(panel);
  float* sums = scratch.take<float>(kRowsPerTask * kPanelWidth);
  uint32_t* packed = w.words ? nullptr : scratch.take<uint32_t>(kBlockDepth * kPanelWidth);
  const bool widen = sizeof(T) == 2 && RowWords<T>::kDepth == 1 && rows > kRowsWidenedInRegisters;
  float* widened = widen ? scratch.take<float>(kBlockDepth * kPanelWidth) : nullptr;
  const auto finish = [&](int64_t r, int64_t count) {
    finish_panel(args, sums + r * width, width, a.first + row + r, count, column, columns);
  };
  if (args.k == 0) {
    memset(sums, 0, static_cast<size_t>(rows * width) * 4);
    finish(0, rows);
  }

  for (int64_t begin = 0; begin < args.k; begin += kBlockDepth) {
    const int64_t depth = smaller(kBlockDepth, args.k - begin);
    // A group's sums are finished while they lie in the first cache, and written beside the next group's products; what
    // they will overwrite is asked for in time.
    const auto done = [&](int64_t r, int64_t count) {
      if (begin + depth < args.k) return;
      finish(r, count);
      const int64_t next = a.first + row + r + count, more = smaller(kTileRows, rows - r - count);
      ask_rows<true>(args.y, next, more, column, columns);
      if (args.gate) ask_rows<false>(args.gate, next, more, column, columns);
    };
    const uint32_t* words = packed;
    if (packed) {
      const T* at = static_cast<const T*>(args.w.data) + begin * args.w.stride[0] + column * args.w.stride[1];
      pack_words(Lines<T>{at, args.w.stride[0], args.w.stride[1]}, depth, columns, width, packed);
    } else {
      words = w.words + w.all.offset(panel) - w.all.offset(w.first) + steps_of<T>(begin) * width;
    }
    if constexpr (RowWords<T>::kDepth == 1) {
      if (widen) {
        widen_words(words, depth, width, widened);
        multiply_block(a, row, rows, begin, depth, widened, width, sums, done);
        continue;
      }
    }
    multiply_block(a, row, rows, begin, depth, typed_words<T>(words), width, sums, done);
  }
}

// One row times two whole panels: three sums wait for one another, six keep the multipliers busy (Zen 4, from L3: f32
// 0.91 to 0.98 of the read bandwidth, bf16 0.73 to 0.83).
template <class T>
void multiply_panel_pair(const GemmArgs& args, const LeftRows<T>& a, const PackedPanels& w, int64_t panel) {
  constexpr int kVectors = 2 * kTileVectors;
  alignas(64) float sums[2 * kPanelWidth] = {};
  for (int64_t begin = 0; begin < args.k; begin += kBlockDepth) {
    const uint32_t* words = w.words + w.all.offset(panel) + steps_of<T>(begin) * kPanelWidth;
    V acc[1][kVectors];
#pragma GCC unroll 8
    for (int n = 0; n < kVectors; ++n) acc[0][n] = hn::Zero(f32);
    accumulate_words<2>(acc, a.data + row_steps<T>(begin), typed_words<T>(words), w.all.offset(1),
                        smaller(kBlockDepth, args.k - begin));
#pragma GCC unroll 8
    for (int n = 0; n < kVectors; ++n) {
      float* to = sums + n * kLanes;
      hn::Store(begin > 0 ? hn::Add(hn::Load(f32, to), acc[0][n]) : acc[0][n], f32, to);
    }
  }
  finish_panel(args, sums, kPanelWidth, 0, 1, panel * kPanelWidth, kPanelWidth);
  finish_panel(args, sums + kPanelWidth, kPanelWidth, 0, 1, (panel + 1) * kPanelWidth, kPanelWidth);
}

// One row, packed panels: in pairs, then what is left.
template <class T>
void multiply_one_row(const GemmArgs& args, const LeftRows<T>& a, const PackedPanels& w) {
  const int64_t pairs = w.all.whole() / 2;
  parallel_near(w.count - pairs, [&](int64_t task) {
    if (task < pairs) return multiply_panel_pair<T>(args, a, w, 2 * task);
    multiply_panel<T>(args, a, 0, 1, w, task + pairs);
  });
}

template <class T>
void multiply_panels(const GemmArgs& args, const LeftRows<T>& a, const PackedPanels& w) {
  if (a.rows == 1 && w.words) return multiply_one_row<T>(args, a, w);
  // A long sum makes a long task, and the last one of a product is waited for.
  const int64_t most = args.k > kLongDepth ? kRowsPerTask / 2 : kRowsPerTask, tiles = (a.rows + most - 1) / most;
  const int64_t each = round_up((a.rows + tiles - 1) / tiles, kTileRows);
  parallel_near(tiles * w.count, [&](int64_t task) {
    const int64_t row = task / w.count * each;
    if (row < a.rows) multiply_panel<T>(args, a, row, smaller(each, a.rows - row), w, w.first + task % w.count);
  });
}

// Whether rows of a are read where they lie: those of words as the tile wants them, dense along k.
template <class T>
bool reads_lying(const View& a) {
  if (sizeof(T) == 2 && RowWords<T>::kDepth == 1) return false;
  if (a.stride[1] != 1 || a.size[1] % RowWords<T>::kDepth != 0) return false;
  return a.size[0] == 1 || (a.size[0] > kTileRows && a.stride[0] != 0);
}

template <class T>
void gemm_of(const GemmArgs& args) {
  const int64_t m = args.a.size[0];
  if (m == 0 || args.n == 0) return;
  if constexpr (kLeavesZerosOut && sizeof(T) == 4) {
    if (gemm_filled(args)) return;
  }
  const Panels panels{args.n, steps_of<T>(args.k)};
  const int64_t row_bytes = larger(1, args.k * 4), panel_bytes = larger(1, panels.steps * kPanelWidth * 4);
  const int64_t rows_at_a_time = larger(kRowsPerTask, kPackBytes / row_bytes / kRowsPerTask * kRowsPerTask);
  const bool pack = !args.packed && m > kRowsPerTask;
  const int64_t panels_at_a_time = pack ? larger(1, kPackBytes / panel_bytes) : panels.count();

  Scratch scratch;
  const bool lying = reads_lying<T>(args.a);
  RowWord<T>* packed = lying ? nullptr : scratch.take<RowWord<T>>(smaller(m, rows_at_a_time) * row_steps<T>(args.k));
  uint32_t* w = pack ? scratch.take<uint32_t>(panels_at_a_time * kPanelWidth * panels.steps) : nullptr;
  for (int64_t row = 0; row < m; row += rows_at_a_time) {
    LeftRows<T> rows{packed, row, smaller(rows_at_a_time, m - row), 0};
    if (lying) {
      rows.data = reinterpret_cast<const RowWord<T>*>(static_cast<const T*>(args.a.data) + row * args.a.stride[0]);
      rows.apart = args.a.stride[0] * static_cast<int64_t>(sizeof(T));
    } else {
      pack_rows_of<T>(args, row, rows.rows, packed);
    }
    if (!args.packed && m <= kTileRows && args.w.stride[1] == 1) return stream_plain<T>(args, rows.data, m);
    for (int64_t panel = 0; panel < panels.count(); panel += panels_at_a_time) {
      const int64_t count = smaller(panels_at_a_time, panels.count() - panel);
      if (pack) pack_panels<T>(args.w, args.k, panels, panel, count, w);
      multiply_panels<T>(args, rows, {panels, panel, count, pack ? w : static_cast<const uint32_t*>(args.packed)});
    }
  }
}
