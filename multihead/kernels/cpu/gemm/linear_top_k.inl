// The largest products of rows with all columns: integers first, then f32 for the few that may be among them.
#pragma once

#include "multihead/kernels/cpu/gemm/linear_top_k_pack.inl"
#include "multihead/kernels/cpu/philox.inl"
#include "multihead/kernels/cpu/rows/max.inl"
#include "multihead/kernels/cpu/rows/top_list.inl"
#include "multihead/kernels/cpu/rows/vectors.inl"
#include "multihead/kernels/cpu/vector_math.inl"

using VI = hn::Vec<I>;

// Rows of a tile: 8 × 3 sums, the 3 vectors of a step, the row's pair and a product take 29 registers.
constexpr int kTopRows = HWY_TARGET <= HWY_AVX3 ? 8 : 4;

// a · b, in one order.
HWY_INLINE float dot_of(const float* a, const float* b, int64_t n) {
  Chains sums(0);
  for_chains(n, [&](int64_t at, auto extent, int chain) {
    sums.of[chain] = hn::MulAdd(get(a + at, extent), get(b + at, extent), sums.of[chain]);
  });
  return sums.sum();
}

// acc + a · b over pairs of neighbours.
HWY_INLINE VI add_pairs(VI acc, hn::Vec<I16> a, hn::Vec<I16> b) {
#if HWY_ARCH_ARM
  const VI x = hn::BitCast(i32, a), y = hn::BitCast(i32, b);
  const VI low = hn::Mul(hn::ShiftRight<16>(hn::ShiftLeft<16>(x)), hn::ShiftRight<16>(hn::ShiftLeft<16>(y)));
  return hn::Add(acc, hn::Add(low, hn::Mul(hn::ShiftRight<16>(x), hn::ShiftRight<16>(y))));
#elif defined(__AVX512VNNI__)
  return VI{_mm512_dpwssd_epi32(acc.raw, a.raw, b.raw)};
#else
  VI unused = acc;
  return hn::ReorderWidenMulAccumulate(i32, a, b, acc, unused);
#endif
}

// R rows of pairs, one behind the other in every step, times a panel: the sums of row r begin at out + r * kTopPanel.
template <int R>
HWY_NOINLINE void multiply_pairs(const uint32_t* HWY_RESTRICT a, const uint32_t* HWY_RESTRICT b, int64_t steps,
                                 int32_t* HWY_RESTRICT out) {
  VI acc[R][kTopVectors];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 3
    for (int n = 0; n < kTopVectors; ++n) acc[r][n] = hn::Zero(i32);
  for (int64_t s = 0; s < steps; ++s, a += R, b += kTopPanel) {
    hn::Vec<I16> column[kTopVectors];
#pragma GCC unroll 3
    for (int n = 0; n < kTopVectors; ++n) column[n] = hn::BitCast(i16, hn::Load(u32, b + n * kLanes));
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const hn::Vec<I16> pair = hn::BitCast(i16, hn::Set(u32, a[r]));
#pragma GCC unroll 3
      for (int n = 0; n < kTopVectors; ++n) acc[r][n] = add_pairs(acc[r][n], column[n], pair);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 3
    for (int n = 0; n < kTopVectors; ++n) hn::Store(acc[r][n], i32, out + r * kTopPanel + n * kLanes);
}

// Panels of a chunk, whose sums a tile of rows holds together: 21 KB of them, out of 336 KB of weights.
constexpr int64_t kTopChunk = 14;

// What one row knows of the columns of a group.
struct TopRow {
  float scale, margin;  // of the row's integers; how far apart two columns that are equal in f32 may seem
  float base;           // exponentials are of products less this
  float bar;            // a column below it is not among the k largest
  bool crowded;         // more columns may be among the k largest than there is room for
  int64_t ranked, held;
  float* best;    // (k): the largest products so far, descending
  float* values;  // (room): of the columns that may be among the k largest, ascending
  int32_t* columns;
};

// A group of columns against a block of rows.
struct TopTask {
  const TopWeights& w;
  int64_t k, room;
  const uint32_t* x;  // (steps, rows of a tile), tile after tile
  TopRow* rows;
  float* sums;  // (rows, kLanes): of exponentials

  HWY_INLINE void rank(TopRow& row, float value) const {
    if (row.ranked == k && !(value > row.best[k - 1])) return;
    int64_t at = row.ranked < k ? row.ranked++ : k - 1;
    for (; at > 0 && row.best[at - 1] < value; --at) row.best[at] = row.best[at - 1];
    row.best[at] = value;
    if (row.ranked == k && row.best[k - 1] - row.margin > row.bar) row.bar = row.best[k - 1] - row.margin;
  }

  void make_room(TopRow& row) const {
    int64_t left = 0;
    for (int64_t n = 0; n < row.held; ++n) {
      if (row.values[n] < row.bar) continue;
      row.values[left] = row.values[n];
      row.columns[left++] = row.columns[n];
    }
    row.held = left;
    row.crowded |= left == room;
  }

  // Columns from `first` on, of which those of `passing` may be among the k largest.
  HWY_NOINLINE void keep(TopRow& row, const int32_t* values, int64_t first, uint64_t passing) const {
    for (; passing != 0; passing &= passing - 1) {
      const int n = __builtin_ctzll(passing);
      float value;
      memcpy(&value, values + n, sizeof value);
      if (value < row.bar) continue;
      rank(row, value);
      if (row.held == room) make_room(row);
      if (row.held == room) continue;
      row.values[row.held] = value;
      row.columns[row.held++] = static_cast<int32_t>(first + n);
    }
  }

  // The integers of a row with panels [begin, end), `apart` from one panel to the next, become the bits of products in
  // f32; gives the largest of each lane.
  HWY_INLINE V scale_products(const TopRow& row, int32_t* integers, int64_t apart, int64_t begin, int64_t end) const {
    const V scale = hn::Set(f32, row.scale);
    V most = hn::Set(f32, kNone);
    for (int64_t panel = begin; panel < end; ++panel, integers += apart) {
      const int64_t first = panel * kTopPanel, count = smaller(kTopPanel, w.n - first);
#pragma GCC unroll 3
      for (int n = 0; n < kTopVectors; ++n) {
        const V column_scale = hn::Load(f32, w.scales + first + n * kLanes);
        V y = hn::Mul(hn::ConvertTo(f32, hn::Load(i32, integers + n * kLanes)), hn::Mul(scale, column_scale));
        if (count < kTopPanel) {
          const int64_t whole = larger(0, smaller(kLanes, count - n * kLanes));
          y = hn::IfThenElse(hn::FirstN(f32, static_cast<size_t>(whole)), y, hn::Set(f32, kNone));
        }
        most = hn::Max(most, y);
        hn::Store(hn::BitCast(i32, y), i32, integers + n * kLanes);
      }
    }
    return most;
  }

  // Takes in the largest of every lane of a chunk. Before any column is ranked: the k-th largest of them is at most the
  // k-th largest of all. Few columns then pass the bar, which are those that the core does not foresee (Zen 4, 8000
  // columns: 26 to 23 us a row).
  HWY_INLINE void raise(int64_t r, V most) const {
    TopRow& row = rows[r];
    const float largest = hn::GetLane(hn::MaxOfLanes(f32, most));
    if (row.ranked == 0 && k <= kLanes) {
      float bar = largest;
      for (int64_t n = 1; n < k; ++n) {
        most = hn::IfThenElse(hn::Lt(most, hn::Set(f32, bar)), most, hn::Set(f32, kNone));
        bar = hn::GetLane(hn::MaxOfLanes(f32, most));
      }
      row.bar = bar - row.margin;
    }
    // An exponential overflows past 88.
    if (largest <= row.base + 60) return;
    const V shrink = hn::Set(f32, expf(row.base - largest));
    hn::Store(hn::Mul(hn::Load(f32, sums + r * kLanes), shrink), f32, sums + r * kLanes);
    row.base = largest;
  }

  // Takes in row r with panels [begin, end).
  HWY_INLINE void take(int64_t r, int32_t* products, int64_t apart, int64_t begin, int64_t end) const {
    TopRow& row = rows[r];
    raise(r, scale_products(row, products, apart, begin, end));
    const V base = hn::Set(f32, row.base);
    V sum = hn::Load(f32, sums + r * kLanes);
    for (int64_t panel = begin; panel < end; ++panel, products += apart) {
      const V bar = hn::Set(f32, row.bar);
      uint64_t passing = 0;
#pragma GCC unroll 3
      for (int n = 0; n < kTopVectors; ++n) {
        const V y = hn::BitCast(f32, hn::Load(i32, products + n * kLanes));
        sum = hn::Add(sum, exp_past(y, base));
        uint8_t bits[8] = {};
        hn::StoreMaskBits(f32, hn::Ge(y, bar), bits);
        uint64_t mask;
        memcpy(&mask, bits, 8);
        passing |= mask << n * kLanes;
      }
      const int64_t first = panel * kTopPanel, count = smaller(kTopPanel, w.n - first);
      if (count < kTopPanel) passing &= (uint64_t{1} << count) - 1;
      if (passing != 0) keep(row, products, first, passing);
    }
    hn::Store(sum, f32, sums + r * kLanes);
  }

  // The sums pass through memory: kept in registers past the loop, GCC 12 stores them in every step of it (35 against
  // 21 us a row, Zen 4).
  template <int R>
  HWY_INLINE void tile(int64_t first, int64_t begin, int64_t end) const {
    HWY_ALIGN int32_t out[kTopChunk * R * kTopPanel];
    for (int64_t panel = begin; panel < end; ++panel)
      multiply_pairs<R>(x + first * w.steps, w.panel(panel), w.steps, out + (panel - begin) * R * kTopPanel);
    for (int64_t r = 0; r < R; ++r) take(first + r, out + r * kTopPanel, R * kTopPanel, begin, end);
  }

  // body<R>(first) over rows in tiles of 8 (4 where registers are few), 4, 2 and 1.
  template <class Body>
  static HWY_INLINE void for_top_tiles(int64_t count, Body&& body) {
    int64_t r = 0;
    if constexpr (kTopRows == 8) {
      for (; r + 8 <= count; r += 8) body.template operator()<8>(r);
    }
    for (; r + 4 <= count; r += 4) body.template operator()<4>(r);
    if (r + 2 <= count) {
      body.template operator()<2>(r);
      r += 2;
    }
    if (r < count) body.template operator()<1>(r);
  }

  void run(int64_t count, int64_t begin, int64_t end) const {
    for (int64_t chunk = begin; chunk < end; chunk += kTopChunk)
      for_top_tiles(count, [&]<int R>(int64_t first) { tile<R>(first, chunk, smaller(end, chunk + kTopChunk)); });
  }
};

// The row in f32 throughout.
inline void top_plainly(const LinearTopKArgs& args, int64_t r) {
  const int64_t n = args.w.size[0], k = args.w.size[1];
  Scratch scratch;
  float* products = scratch.take<float>(n);
  for (int64_t c = 0; c < n; ++c) products[c] = dot_of(row_of<float>(args.x, r), row_of<float>(args.w, c), k);
  top_of_row(products, n, TopKArgs{.k = args.k, .values = args.values, .indices = args.indices}, r);
}

// A row's groups, one behind the other: their sums of exponentials, and the columns that may be among the k largest.
inline void join_groups(const LinearTopKArgs& args, int64_t r, const TopRow* groups, int64_t apart, int64_t count,
                        const float* sums) {
  float base = kNone;
  bool crowded = false;
  TopList ranks;
  ranks.k = args.k;
  for (int64_t g = 0; g < count; ++g) {
    const TopRow& group = groups[g * apart];
    base = group.base > base ? group.base : base;
    crowded |= group.crowded;
    for (int64_t n = 0; n < group.ranked; ++n) ranks.offer(group.best[n], 0);
  }
  if (crowded) return top_plainly(args, r);
  const float bar = ranks.bar() - groups[0].margin;

  TopList list;
  list.k = args.k;
  float all = 0, rough = 0, exact = 0;
  for (int64_t g = 0; g < count; ++g) {
    const TopRow& group = groups[g * apart];
    const V lanes = hn::Load(f32, sums + g * apart * kLanes);
    all += hn::GetLane(hn::SumOfLanes(f32, lanes)) * expf(group.base - base);
    for (int64_t n = 0; n < group.held; ++n) {
      if (group.values[n] < bar) continue;
      const float product = dot_of(row_of<float>(args.x, r), row_of<float>(args.w, group.columns[n]), args.w.size[1]);
      rough += expf(group.values[n] - base);
      exact += expf(product - base);
      list.offer(product, group.columns[n]);
    }
  }
  const float rest = all > rough ? all - rough : 0;
  const float lse = base + logf(rest + exact);
  for (int64_t at = 0; at < args.k; ++at) {
    args.values[r * args.k + at] = list.values[at] - lse;
    args.indices[r * args.k + at] = list.columns[at];
  }
}

// Rows of a block: a panel of w is read once for these.
constexpr int64_t kTopBlock = 128;
// Columns of a group, for threads to share a single row. By sizes alone: the order of sums is that of groups.
constexpr int64_t kTopGroup = 2016;

// A row that is not finite takes no part: it is computed in f32.
inline bool is_usable(const Rounded& row) { return row.length < 1e18f; }

// The integers of a block of rows, as TopTask reads them.
inline void round_rows(const LinearTopKArgs& args, int64_t begin, int64_t count, const Rounded* facts, uint32_t* out) {
  const int64_t k = args.x.size[1], steps = TopWeights::steps_of(k);
  TopTask::for_top_tiles(count, [&]<int R>(int64_t first) {
    for (int64_t r = 0; r < R; ++r) {
      uint32_t* words = out + first * steps + r;
      if (is_usable(facts[first + r])) {
        round_row(row_of<float>(args.x, begin + first + r), k, facts[first + r].scale, R, words);
      } else {
        for (int64_t s = 0; s < steps; ++s) words[s * R] = 0;
      }
    }
  });
}

// How far apart two columns may seem that are equal in f32: both roundings to integers, and those of two sums in f32.
inline float margin_of(const Rounded& x, const TopWeights& w, int64_t k) {
  const float depth = static_cast<float>(k);
  const float integers = 0.5f * (x.scale * w.facts->most_sum + w.facts->most_scale * (x.sum + x.scale * depth));
  const float sums = (depth + 8) * 1.2e-7f * x.length * w.facts->most_length;
  return 2.02f * (integers + sums);
}

inline void linear_top_k_block(const LinearTopKArgs& args, const TopWeights& w, int64_t begin, int64_t count) {
  const int64_t k = args.x.size[1], groups = blocks_of(w.n, kTopGroup), room = args.k + 56;
  const int64_t panels = kTopGroup / kTopPanel;
  Scratch scratch;
  Rounded* facts = scratch.take<Rounded>(count);
  uint32_t* x = scratch.take<uint32_t>(count * w.steps);
  TopRow* rows = scratch.take<TopRow>(groups * count);
  float* sums = scratch.take<float>(groups * count * kLanes);
  float* values = scratch.take<float>(groups * count * (room + args.k));
  int32_t* columns = scratch.take<int32_t>(groups * count * room);
  for (int64_t r = 0; r < count; ++r) facts[r] = measured(row_of<float>(args.x, begin + r), k);
  for (int64_t n = 0; n < groups * count; ++n) {
    const Rounded& fact = facts[n % count];
    float* own = values + n * (room + args.k);
    rows[n] = {.scale = fact.scale,
               .margin = margin_of(fact, w, k),
               .base = kNone,
               .bar = kNone,
               .crowded = !is_usable(fact),
               .ranked = 0,
               .held = 0,
               .best = own,
               .values = own + args.k,
               .columns = columns + n * room};
    hn::Store(hn::Zero(f32), f32, sums + n * kLanes);
  }
  round_rows(args, begin, count, facts, x);
  parallel_for(groups, [&](int64_t g) {
    const TopTask task{w, args.k, room, x, rows + g * count, sums + g * count * kLanes};
    task.run(count, g * panels, smaller(w.panels(), (g + 1) * panels));
  });
  for (int64_t r = 0; r < count; ++r) join_groups(args, begin + r, rows + r, count, groups, sums + r * kLanes);
}

void linear_top_k(const LinearTopKArgs& args, Queue&) {
  const TopWeights w = TopWeights::at(args.packed, args.w.size[0], args.w.size[1]);
  const int64_t rows = args.x.size[0];
  if (rows <= kTopBlock) return linear_top_k_block(args, w, 0, rows);
  parallel_for(blocks_of(rows, kTopBlock), [&](int64_t n) {
    linear_top_k_block(args, w, n * kTopBlock, smaller(kTopBlock, rows - n * kTopBlock));
  });
}
