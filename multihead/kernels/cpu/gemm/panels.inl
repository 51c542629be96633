// Panels of w: where they lie, and the register tiles that multiply one with a few rows.
#pragma once

#include "multihead/kernels/cpu/gemm/microkernel.inl"
#include "multihead/kernels/cpu/gemm/pack.inl"
#include "multihead/kernels/cpu/philox.inl"
#include "multihead/kernels/cpu/vector_math.inl"

// What a row of a is packed as: f32, or pairs of bf16 where the rung multiplies them as they are.
template <class T>
struct RowWords {
  using Word = float;
  static constexpr int64_t kDepth = 1;  // elements of k in a word
};
#if defined(MH_PAIR_PRODUCTS)
template <>
struct RowWords<bf16> {
  using Word = uint32_t;
  static constexpr int64_t kDepth = 2;
};
#endif
template <class T>
using RowWord = typename RowWords<T>::Word;
template <class T>
constexpr int64_t row_steps(int64_t depth) {
  return (depth + RowWords<T>::kDepth - 1) / RowWords<T>::kDepth;
}

// Depth of a block: the sum of a block starts from zero, sums of blocks are added in ascending order.
constexpr int64_t kBlockDepth = 256;

// Where the panels of w (K, N) lie.
struct Panels {
  int64_t n, steps;  // columns, and steps of the whole depth

  int64_t count() const { return (n + kPanelWidth - 1) / kPanelWidth; }
  // Panels of the full width. A single vector left over takes one from the panel before it: few sums would wait for one
  // another.
  int64_t whole() const {
    const int64_t rest = n % kPanelWidth;
    return n / kPanelWidth - (rest > 0 && rest <= kLanes && n > kPanelWidth ? 1 : 0);
  }
  int64_t column(int64_t panel) const {
    return smaller(n, panel * kPanelWidth - (panel > whole() && panel < count() ? kLanes : 0));
  }
  int64_t columns(int64_t panel) const { return column(panel + 1) - column(panel); }
  int64_t width(int64_t panel) const { return round_up(columns(panel), kLanes); }
  int64_t offset(int64_t panel) const { return column(panel) * steps; }
  int64_t words() const { return round_up(n, kLanes) * steps; }
};

// Panels [first, first + count) of w, each with its whole depth, one after the other.
template <class T>
void pack_panels(const View& w, int64_t k, const Panels& panels, int64_t first, int64_t count, uint32_t* out) {
  const int64_t blocks = (k + kBlockDepth - 1) / kBlockDepth;
  parallel_near(count * blocks, [&](int64_t task) {
    const int64_t panel = first + task / blocks, begin = task % blocks * kBlockDepth;
    const Lines<T> lines{static_cast<const T*>(w.data) + begin * w.stride[0] + panels.column(panel) * w.stride[1],
                         w.stride[0], w.stride[1]};
    const int64_t width = panels.width(panel);
    pack_words(lines, smaller(kBlockDepth, k - begin), panels.columns(panel), width,
               out + panels.offset(panel) - panels.offset(first) + steps_of<T>(begin) * width);
  });
}

// sum += the products of a word of a, in all lanes, and words of w.
HWY_INLINE V add_products(V sum, float a, V w) { return hn::MulAdd(hn::Set(f32, a), w, sum); }
HWY_INLINE V words_at(const float* at) { return hn::LoadU(f32, at); }
HWY_INLINE int64_t word_steps(const float*, int64_t depth) { return depth; }
#if defined(MH_PAIR_PRODUCTS)
using PairWords = hn::Vec<hn::ScalableTag<uint32_t>>;
HWY_INLINE V add_products(V sum, uint32_t a, PairWords w) {
  return V{_mm512_dpbf16_ps(sum.raw, (__m512bh)_mm512_set1_epi32(static_cast<int>(a)), (__m512bh)w.raw)};
}
HWY_INLINE int64_t word_steps(const uint32_t*, int64_t depth) { return steps_of<bf16>(depth); }
HWY_INLINE PairWords words_at(const uint32_t* at) { return hn::LoadU(hn::ScalableTag<uint32_t>(), at); }
#endif

template <class Row, class Words, int R, int N>
HWY_INLINE void accumulate_step(V (&acc)[R][N], const Row* a, const Words (&columns)[N]) {
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
    for (int n = 0; n < N; ++n) acc[r][n] = add_products(acc[r][n], a[r], columns[n]);
}

// The same, rows of a where they lie, `apart` bytes from one to the next. The rows that follow are asked for on the
// way: each is a run of a KB at most, too short for the core to foresee.
template <int R, int N>
HWY_INLINE void accumulate_lying(V (&)[R][N], const float*, int64_t, const uint32_t*, int64_t) {
}  // pairs meet packed rows
template <class Word, int R, int N>
HWY_INLINE void accumulate_lying(V (&acc)[R][N], const Word* HWY_RESTRICT a, int64_t apart, const Word* HWY_RESTRICT w,
                                 int64_t depth) {
  constexpr int64_t kLine = 64 / sizeof(Word);
  const char* rows[R];
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) rows[r] = reinterpret_cast<const char*>(a) + r * apart;
  const int64_t steps = word_steps(w, depth);
  for (int64_t first = 0; first < steps; first += kLine) {
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) __builtin_prefetch(rows[r] + first * 4 + R * apart);
    const int64_t end = smaller(steps, first + kLine);
    for (int64_t s = first; s < end; ++s) {
      decltype(words_at(w)) columns[N];
#pragma GCC unroll 8
      for (int n = 0; n < N; ++n) columns[n] = words_at(w + (s * N + n) * kLanes);
#pragma GCC unroll 16
      for (int r = 0; r < R; ++r) {
        Word x;
        memcpy(&x, rows[r] + s * 4, 4);
#pragma GCC unroll 8
        for (int n = 0; n < N; ++n) acc[r][n] = add_products(acc[r][n], x, columns[n]);
      }
    }
  }
}

// acc += Σ_k a[k · R + r] · w(k, column) over P panels, `apart` words from one to the next. Both in f32, or both in
// pairs.
template <int P, class Word, int R, int N>
HWY_INLINE void accumulate_words(V (&acc)[R][N], const Word* HWY_RESTRICT a, const Word* HWY_RESTRICT w, int64_t apart,
                                 int64_t depth) {
  constexpr int kEach = N / P;
  const int64_t steps = word_steps(w, depth);
#pragma GCC unroll 2
  for (int64_t s = 0; s < steps; ++s) {
    decltype(words_at(w)) columns[N];
#pragma GCC unroll 8
    for (int n = 0; n < N; ++n) columns[n] = words_at(w + n / kEach * apart + (s * kEach + n % kEach) * kLanes);
    accumulate_step(acc, a + s * R, columns);
  }
}

// a in f32, w in pairs that are widened on the way.
template <int P, int R, int N>
HWY_INLINE void accumulate_words(V (&acc)[R][N], const float* HWY_RESTRICT a, const uint32_t* HWY_RESTRICT w,
                                 int64_t apart, int64_t depth) {
  constexpr int kEach = N / P;
  const hn::ScalableTag<uint32_t> u32;
  const auto upper = hn::Set(u32, 0xffff0000u);
  const auto load = [&](int64_t s, int n) HWY_ATTR __attribute__((always_inline)) {
    return hn::LoadU(u32, w + n / kEach * apart + (s * kEach + n % kEach) * kLanes);
  };
  V columns[N];
  for (int64_t s = 0; s < depth / 2; ++s) {
    hn::Vec<hn::ScalableTag<uint32_t>> pairs[N];
#pragma GCC unroll 8
    for (int n = 0; n < N; ++n) pairs[n] = load(s, n);
#pragma GCC unroll 8
    for (int n = 0; n < N; ++n) columns[n] = hn::BitCast(f32, hn::ShiftLeft<16>(pairs[n]));
    accumulate_step(acc, a + 2 * s * R, columns);
#pragma GCC unroll 8
    for (int n = 0; n < N; ++n) columns[n] = hn::BitCast(f32, hn::And(pairs[n], upper));
    accumulate_step(acc, a + (2 * s + 1) * R, columns);
  }
  if (depth % 2 == 0) return;
#pragma GCC unroll 8
  for (int n = 0; n < N; ++n) columns[n] = hn::BitCast(f32, hn::ShiftLeft<16>(load(depth / 2, n)));
  accumulate_step(acc, a + (depth - 1) * R, columns);
}

// c = (c +) Σ_k a(k, r) · w(k, column) for R rows and N vectors of columns; a and w in f32 or pairs of bf16. The words
// of a lie as a[step · R + r]; or, where `apart` is not 0, rows that many bytes apart.
template <class Row, class Word, int R, int N>
HWY_NOINLINE void multiply_tile(const Row* HWY_RESTRICT a, int64_t apart, const Word* HWY_RESTRICT w, int64_t depth,
                                bool add, float* HWY_RESTRICT c) {
  V acc[R][N];
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
    for (int n = 0; n < N; ++n) acc[r][n] = hn::Zero(f32);
  if (apart == 0) {
    accumulate_words<1>(acc, a, w, 0, depth);
  } else {
    accumulate_lying(acc, a, apart, w, depth);
  }
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
    for (int n = 0; n < N; ++n) {
      float* to = c + (r * N + n) * kLanes;
      hn::StoreU(add ? hn::Add(hn::LoadU(f32, to), acc[r][n]) : acc[r][n], f32, to);
    }
}

template <class Row, class Word>
using MultiplyTile = void (*)(const Row*, int64_t, const Word*, int64_t, bool, float*);

template <class Row, class Word, int R = kTileRows>
MultiplyTile<Row, Word> multiply_tile_for(int64_t rows, int64_t vectors) {
  if constexpr (R > 1) {
    if (rows != R) return multiply_tile_for<Row, Word, R - 1>(rows, vectors);
  }
  return vectors == 3   ? multiply_tile<Row, Word, R, 3>
         : vectors == 2 ? multiply_tile<Row, Word, R, 2>
                        : multiply_tile<Row, Word, R, 1>;
}
static_assert(kTileVectors == 3);
