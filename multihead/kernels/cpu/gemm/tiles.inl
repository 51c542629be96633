// The matrix product of bf16 on tiles: 32 × 32 sums in four tiles, whatever the number of rows; f32 goes to the rung
// below.
//
// A task takes some rows and all panels, or a part of them where rows are few: its rows of a stay in the second cache,
// are copied there if they must be, and its lines of y are written by one core. K goes by in blocks of kTileSteps;
// where there are several, the sums of the task wait between them. An element's sum is one chain of tile products over
// k: rows, threads and blocks decide nothing. TDPBF16PS takes 16 cycles, so that a step of four products leaves 64
// cycles for two tiles of a out of the second cache (32 of its 50 bytes per cycle), two of w out of the first, and the
// work of a beat.
#pragma once

#include "multihead/kernels/cpu/gemm/epilogue.inl"
#include "multihead/kernels/cpu/gemm/pack.inl"
#include "multihead/kernels/cpu/gemm/tile_beat.inl"
#include "multihead/kernels/cpu/gemm/tile_operands.inl"
#include "multihead/kernels/cpu/tile.inl"
#include "multihead/kernels/cpu/vector_math.inl"

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

struct PanelTask {
  int64_t row, rows, panel, panels;
};

// Whether all panels meet a block of k before the next one comes: where the rows of a do not stay in the second cache.
inline bool tiles_take_panels_first(int64_t rows, int64_t k) {
  return tile_steps(k) > kTileSteps && rows * k > 512 << 10;
}

// One task. `packed` is its first panel, or null where w is packed here, block by block.
template <class Tiles, class Y>
class PanelTaskRun {
 public:
  PanelTaskRun(const GemmArgs& args, const TilePanels& panels, const PanelTask& task, const uint32_t* packed)
      : args_(args), panels_(panels), task_(task), packed_(packed), left_(args.a, task.row, task.rows, scratch_) {
    beat_.left = &left_;
    sums_ = scratch_.template take<float>((panels_first_ ? groups() * task.panels
                                           : in_parts()  ? groups()
                                                         : 1) *
                                          kBlock);
    if (!packed) room_ = scratch_.template take<uint32_t>(kTileSteps * kTileStepWords);
  }

  void run() {
    const int64_t blocks = larger(1, blocks_of_k());
    beat_.bring(0, 0, smaller(kTileSteps, tile_steps(args_.k)));
    for (int64_t n = 0; n < blocks * task_.panels; ++n) {
      if (panels_first_) {
        multiply_panel(n % task_.panels, n / task_.panels * kTileSteps);
      } else {
        multiply_panel(n / blocks, n % blocks * kTileSteps);
      }
    }
    beat_.finish_some(beat_.rows);
  }

 private:
  static constexpr int64_t kBlock = 32 * kTileColumns;  // sums

  int64_t blocks_of_k() const { return (tile_steps(args_.k) + kTileSteps - 1) / kTileSteps; }
  bool in_parts() const { return blocks_of_k() > 1; }
  int64_t groups() const { return (task_.rows + 31) / 32; }

  // Sums wait for the next block of k, those of all panels or of one. A block's sums may lie where those before them
  // are being finished: the beats finish them before the products end, and only then is anything stored.
  float* sums_of(int64_t p, int64_t group) const {
    return sums_ + (panels_first_ ? p * groups() + group : in_parts() ? group : 0) * kBlock;
  }

  // The first panel is the first to read a: the squares that come next are brought near beside its products.
  void bring_next(int64_t r, int64_t step) {
    const int64_t steps = tile_steps(args_.k);
    if (r + 32 < task_.rows) return beat_.bring(r + 32, step, smaller(steps, step + kTileSteps));
    beat_.bring(0, step + kTileSteps, smaller(steps, step + 2 * kTileSteps));
  }

  void multiply_panel(int64_t p, int64_t step) {
    const int64_t panel = task_.panel + p, column = panel * kTileColumns, steps = tile_steps(args_.k);
    const int64_t some = smaller(kTileSteps, steps - step);
    const bool last = step + some == steps, more = p + 1 < task_.panels || (!panels_first_ && !last);
    const uint32_t* w = packed_ ? packed_ + p * panels_.words() + step * kTileStepWords : room_;
    if (room_) pack_tile_steps(args_.w, args_.k, step * kTileDepth, some, column, panels_.columns(panel), room_);
    beat_.next = reinterpret_cast<const char*>(w + (panels_first_ ? panels_.words() : some * kTileStepWords));
    beat_.fetch = packed_ && more ? round_up(kTileStepWords * 4 / groups(), 64) : 0;
    const int64_t apart = args_.y.stride[0];
    Finish<Y>& finish = finish_[p % 2];
    if (last) finish.begin(column, panels_.columns(panel));
    for (int64_t r = 0; r < task_.rows; r += 32) {
      const int64_t rows = smaller(32, task_.rows - r);
      if (p == 0) bring_next(r, step);
      float* c = sums_of(p, r / 32);
      const char* a = left_.at(r) + step * kTileRow;
      if (rows > 16) {
        multiply_tiles<true>(tiles_, a, left_.apart_at(r), w, some, step > 0, c, beat_);
      } else {
        multiply_tiles<false>(tiles_, a, left_.apart_at(r), w, some, step > 0, c, beat_);
      }
      if (last) {
        beat_.take(finish, c, task_.row + r, rows, larger(some, 1));
        beat_.plain_rows.ahead = r + 32 < task_.rows ? 32 * apart : p + 1 < task_.panels ? kTileColumns - r * apart : 0;
      }
    }
  }

  const GemmArgs& args_;
  const TilePanels& panels_;
  const PanelTask task_;
  const bool panels_first_ = tiles_take_panels_first(task_.rows, args_.k);
  const uint32_t* const packed_;
  Scratch scratch_;
  const TileLeft left_;
  float* sums_;
  uint32_t* room_ = nullptr;
  Finish<Y> finish_[2] = {Finish<Y>(args_), Finish<Y>(args_)};  // of this panel, and of the one whose rows are left
  TileBeat<Y> beat_;
  Tiles tiles_;
};

// Rows and panels of a task: some tasks for each thread; where the sums of all its panels wait, as many as stay in the
// second cache.
inline PanelTask tile_task_sizes(int64_t m, int64_t panels, int64_t k) {
  const int64_t wanted = 4 * threads();
  const int64_t most = smaller(256, larger(64, round_up((m + wanted - 1) / wanted, 32)));
  const int64_t blocks = (m + most - 1) / most, rows = round_up((m + blocks - 1) / blocks, 32);
  const int64_t parts = smaller(panels, larger(1, wanted / blocks));
  int64_t each = (panels + parts - 1) / parts;
  if (tiles_take_panels_first(rows, k)) each = smaller(each, larger(1, (256 << 10) / (rows * kTileColumns * 4)));
  return {0, rows, 0, each};
}

template <class Tiles>
void gemm_on_tiles(const GemmArgs& args) {
  const int64_t m = args.a.size[0];
  if (m == 0 || args.n == 0) return;
  const TilePanels panels{args.n, args.k};
  // Few rows read w once: packing it beforehand would write and read it again.
  const bool pack = !args.packed && m > 32;
  const int64_t at_a_time = pack ? larger(1, kPackBytes / larger(1, panels.words() * 4)) : larger(1, panels.count());
  Scratch scratch;
  uint32_t* w = pack ? scratch.take<uint32_t>(at_a_time * panels.words()) : nullptr;
  for (int64_t panel = 0; panel < panels.count(); panel += at_a_time) {
    const int64_t count = smaller(at_a_time, panels.count() - panel);
    if (pack) pack_tile_panels(args.w, panels, panel, count, w);
    const uint32_t* packed = pack ? w : static_cast<const uint32_t*>(args.packed);
    const PanelTask size = tile_task_sizes(m, count, args.k);
    const int64_t across = (count + size.panels - 1) / size.panels;
    parallel_near((m + size.rows - 1) / size.rows * across, [&](int64_t task) {
      const int64_t row = task / across * size.rows, first = task % across * size.panels;
      const PanelTask mine{row, smaller(size.rows, m - row), panel + first, smaller(size.panels, count - first)};
      const uint32_t* words = packed ? packed + first * panels.words() : nullptr;
      if (args.y.dtype == DType::bf16) {
        PanelTaskRun<Tiles, bf16>(args, panels, mine, words).run();
      } else {
        PanelTaskRun<Tiles, float>(args, panels, mine, words).run();
      }
    });
  }
}

// bf16 by tiles; f32 stays with the rung below.
template <class Tiles>
struct TileGemm {
  static inline void (*multiply_below)(const GemmArgs&, Queue&) = nullptr;
  static inline void (*pack_below)(const GemmPackArgs&, Queue&) = nullptr;

  static void multiply(const GemmArgs& args, Queue& queue) {
    if (args.a.dtype == DType::bf16) return gemm_on_tiles<Tiles>(args);
    multiply_below(args, queue);
  }
  static void pack(const GemmPackArgs& args, Queue& queue) {
    if (args.w.dtype != DType::bf16) return pack_below(args, queue);
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
