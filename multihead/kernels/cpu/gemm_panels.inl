// Panels of w: where they lie, and the register tiles that multiply one with a few rows.

// Depth of a block: the sum of a block starts from zero, sums of blocks are added in ascending order.
constexpr int64_t kBlockDepth = 256;

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
HWY_INLINE void accumulate_step(V (&acc)[R][N], const float* a, const V (&columns)[N]) {
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) {
    const V x = hn::Set(f32, a[r]);
#pragma GCC unroll 8
    for (int n = 0; n < N; ++n) acc[r][n] = hn::MulAdd(x, columns[n], acc[r][n]);
  }
}

// acc += Σ_k a[k · R + r] · w(k, column) over P panels, `apart` words from one to the next.
template <int P, int R, int N>
HWY_INLINE void accumulate_words(V (&acc)[R][N], const float* HWY_RESTRICT a, const float* HWY_RESTRICT w,
                                 int64_t apart, int64_t depth) {
  constexpr int kEach = N / P;
  if constexpr (P == 1) return accumulate(acc, a, 1, R, w, N * kLanes, depth);
#pragma GCC unroll 2
  for (int64_t k = 0; k < depth; ++k) {
    V columns[N];
#pragma GCC unroll 8
    for (int n = 0; n < N; ++n) columns[n] = hn::LoadU(f32, w + n / kEach * apart + (k * kEach + n % kEach) * kLanes);
    accumulate_step(acc, a + k * R, columns);
  }
}

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

// c = (c +) Σ_k a[k · R + r] · w(k, column) for R rows and N vectors of columns, w in f32 or pairs of bf16.
template <class Word, int R, int N>
HWY_NOINLINE void multiply_tile(const float* HWY_RESTRICT a, const Word* HWY_RESTRICT w, int64_t depth, bool add,
                                float* HWY_RESTRICT c) {
  V acc[R][N];
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
    for (int n = 0; n < N; ++n) acc[r][n] = hn::Zero(f32);
  accumulate_words<1>(acc, a, w, 0, depth);
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
