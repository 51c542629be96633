// The two passes of decode over the cache: scores of four keys at a time, and o += p · v; lanes run along the head
// width.

namespace decode {

// A row of the cache in vectors: `full` units of kParts · kLanes elements and, where something is left, one unit that
// ends with the row and overlaps the one before. Rows narrower than a unit are copied into padded ones first.
struct RowShape {
  int64_t width = 0, unit = 0, full = 0;
  int64_t element = 0;  // bytes
  bool tail = false, narrow = false;

  int64_t units() const { return full + tail; }
  int64_t padded() const { return units() * unit; }
  int64_t bytes() const { return width * element; }
};

// Rows of the cache at equal distances, in bytes. Addresses are computed, not looked up: through a table of row
// addresses the same loop reads a third less (Zen 4: 0.68 of plain read bandwidth from DRAM, 0.78 from L3).
struct Run {
  const char* row = nullptr;
  int64_t stride = 0, count = 0;

  Run slice(int64_t from, int64_t n) const { return {row + from * stride, stride, n}; }
};

// bf16 is widened without shuffles: the even elements of a register are its words shifted left, the odd ones its
// words with the lower half cleared. q and o are kept in that order.
template <class T>
constexpr int kParts = 1;
template <>
constexpr int kParts<bf16> = 2;

template <class T>
HWY_INLINE void load_parts(const T* p, V (&parts)[1]) {
  parts[0] = load_widened(p);
}
HWY_INLINE void load_parts(const bf16* p, V (&parts)[2]) {
  const hn::ScalableTag<uint16_t> u16;
  const hn::ScalableTag<uint32_t> u32;
  const auto both = hn::BitCast(u32, hn::LoadU(u16, &p->bits));
  parts[0] = hn::BitCast(f32, hn::ShiftLeft<16>(both));
  parts[1] = hn::BitCast(f32, hn::And(both, hn::Set(u32, 0xffff0000u)));
}

// The vectors that T is widened into for N query rows. One row waits for the widening of f16, and Zen 4 does that in halves of
// 512 bits (59 GB/s of a row from L2 in one piece, 97 in two); several rows wait for their multiply-adds.
template <class T, int N>
struct Widened {
  using Tag = F;
};
#if HWY_TARGET <= HWY_AVX3
template <>
struct Widened<f16, 1> {
  using Tag = hn::Half<F>;
};
HWY_INLINE void load_parts(const f16* p, hn::Vec<hn::Half<F>> (&parts)[2]) {
  const hn::Half<F> half;
  const hn::Rebind<hwy::float16_t, hn::Half<F>> narrow;
  const auto* at = reinterpret_cast<const hwy::float16_t*>(p);
  parts[0] = hn::PromoteTo(half, hn::LoadU(narrow, at));
  parts[1] = hn::PromoteTo(half, hn::LoadU(narrow, at + kLanes / 2));
}
#endif
template <class T, int N>
using WideTag = typename Widened<T, N>::Tag;
template <class T, int N>
using Wide = hn::Vec<WideTag<T, N>>;
template <class T, int N>
constexpr int kWideLanes = static_cast<int>(hn::MaxLanes(WideTag<T, N>()));
// Vectors of a unit, and how many of them have sums of their own: the halves of what is one vector elsewhere, so that the bits
// are those of one.
template <class T, int N>
constexpr int kWideParts = kParts<T> * kLanes / kWideLanes<T, N>;
template <class T, int N>
constexpr int kChains = kWideParts<T, N> / kParts<T>;

inline int64_t parts_of(DType t) { return t == DType::bf16 ? 2 : 1; }

inline RowShape row_shape(int64_t width, DType t) {
  RowShape s;
  s.width = width;
  s.element = size_of(t);
  s.unit = parts_of(t) * kLanes;
  s.narrow = width < s.unit;
  s.full = s.narrow ? 1 : width / s.unit;
  s.tail = !s.narrow && width % s.unit != 0;
  return s;
}

// How many elements of a row stand in their own place in the order of q and o: the first ones.
inline int64_t in_place(const RowShape& s) { return s.unit == kLanes ? smaller(s.width, s.full * s.unit) : 0; }

// Where element d of a row stands in the order of q and o.
inline int64_t place_of(const RowShape& s, int64_t d) {
  const int64_t at = s.tail && d >= s.full * s.unit ? d - (s.width - s.unit) + s.full * s.unit : d;
  if (s.unit == kLanes) return at;
  const int64_t lane = at & (2 * kLanes - 1);
  return at - lane + (lane & 1) * kLanes + lane / 2;
}

// The sums of a vector's first and second halves, down to four lanes.
template <class D>
HWY_INLINE hn::Vec<hn::FixedTag<float, 4>> fold_to_four(D, hn::Vec<D> x) {
  if constexpr (hn::MaxLanes(D()) == 4) {
    return x;
  } else {
    const hn::Half<D> half;
    return fold_to_four(half, hn::Add(hn::LowerHalf(half, x), hn::UpperHalf(half, x)));
  }
}

// Four sums in each block of four lanes, one of each vector: of its lanes there.
template <class D>
HWY_INLINE hn::Vec<D> sums_in_blocks(D d, hn::Vec<D> a, hn::Vec<D> b, hn::Vec<D> c, hn::Vec<D> e) {
  const hn::RepartitionToWide<D> wide;
  const auto ab = hn::Add(hn::InterleaveLower(d, a, b), hn::InterleaveUpper(d, a, b));
  const auto ce = hn::Add(hn::InterleaveLower(d, c, e), hn::InterleaveUpper(d, c, e));
  const auto ab2 = hn::BitCast(wide, ab), ce2 = hn::BitCast(wide, ce);
  const auto low = hn::BitCast(d, hn::InterleaveLower(wide, ab2, ce2));
  const auto high = hn::BitCast(d, hn::InterleaveUpper(wide, ab2, ce2));
  return hn::Add(low, high);
}

constexpr int kRegisters = HWY_TARGET <= HWY_AVX3 || HWY_ARCH_ARM_A64 ? 32 : 16;

// Keys of which several query rows make one pass after the other: a quarter of a 32 KiB L1.
inline int64_t shared_keys(const RowShape& shape) { return larger(16, 8192 / shape.bytes() / 4 * 4); }

// The scores of a row, and the few past its end that four keys at a time overwrite.
constexpr int64_t kStrip = kDecodeBlock + 16;

// Keys taken at a time by N query rows; their sums leave room in registers for q.
constexpr int keys_at_once(int rows) { return rows <= 2 ? 4 : 2; }

// s[n][0 … K) from the sums of N rows with K keys.
template <class D, int kC, int N, int K>
HWY_INLINE void store_sums(D d, const hn::Vec<D> (&sum)[kC][N][K], float* s) {
  const auto four_sums = [&](int n, int m, int k) HWY_ATTR __attribute__((always_inline)) {
    auto x = sums_in_blocks(d, sum[0][n][0], sum[0][n][1], sum[0][m][k], sum[0][m][k + 1]);
    if constexpr (kC == 2) x = hn::Add(x, sums_in_blocks(d, sum[1][n][0], sum[1][n][1], sum[1][m][k], sum[1][m][k + 1]));
    return fold_to_four(d, x);
  };
  if constexpr (K == 4) {
    const hn::FixedTag<float, 4> four;
#pragma GCC unroll 8
    for (int n = 0; n < N; ++n) hn::StoreU(four_sums(n, n, 2), four, s + n * kStrip);
  } else {
    const hn::FixedTag<float, 2> two;
#pragma GCC unroll 8
    for (int n = 0; n < N; n += 2) {
      const auto sums = four_sums(n, n + 1, 0);
      hn::StoreU(hn::LowerHalf(two, sums), two, s + n * kStrip);
      hn::StoreU(hn::UpperHalf(two, sums), two, s + (n + 1) * kStrip);
    }
  }
}

// dot[c][n] += a unit of a key times that of row n of q, given where it starts.
template <class D, int kP, int kC, int N>
HWY_INLINE void add_products(D d, const hn::Vec<D> (&e)[kP], const float* q, int64_t width, hn::Vec<D> (&dot)[kC][N]) {
  constexpr int kStep = static_cast<int>(hn::MaxLanes(D()));
#pragma GCC unroll 2
  for (int p = 0; p < kP; ++p) {
#pragma GCC unroll 8
    for (int n = 0; n < N; ++n) dot[p % kC][n] = hn::MulAdd(e[p], hn::Load(d, q + n * width + p * kStep), dot[p % kC][n]);
  }
}

// s[n][j] = q row n · key j. Each key is read from its first byte to its last: rows read in step are a pattern the
// prefetchers do not know (Zen 4, f32 from DRAM: 0.46 of plain read bandwidth). kUnits > 0: that many units, no tail,
// and as many rows of q as there are registers stay in them.
template <class T, int N, int kUnits>
void dot_rows(const RowShape& shape, const Run& keys, const float* q, const float* head, float* s) {
  using Vector = Wide<T, N>;
  constexpr WideTag<T, N> tag;
  constexpr int K = keys_at_once(N), kStep = kWideLanes<T, N>, kP = kWideParts<T, N>, kUnit = kP * kStep, kVectors = kUnits * kP;
  constexpr int kRoom = kUnits > 0 ? (kRegisters - 4 - N * K) / kVectors : 0, kHeld = kRoom < N ? kRoom : N;
  constexpr int kC = kChains<T, N>;
  const int64_t width = shape.padded(), end = shape.full * kUnit;
  Vector held[kHeld > 0 ? kHeld : 1][kVectors > 0 ? kVectors : 1];
#pragma GCC unroll 8
  for (int n = 0; n < kHeld; ++n) {
#pragma GCC unroll 16
    for (int c = 0; c < kVectors; ++c) held[n][c] = hn::Load(tag, q + n * width + c * kStep);
  }
  const char* row = keys.row;
  const int64_t stride = keys.stride, last = keys.count - 1;
  for (int64_t j = 0; j <= last; j += K) {
    Vector sum[kC][N][K];
#pragma GCC unroll 4
    for (int k = 0; k < K; ++k) {
      const T* key = reinterpret_cast<const T*>(row);
      row += j + k < last ? stride : 0;
      asm volatile("" ::: "memory");  // keeps the compiler from reading two keys in step
      Vector e[kP], dot[kC][N];
#pragma GCC unroll 8
      for (int n = 0; n < kC * N; ++n) dot[n / N][n % N] = hn::Zero(tag);
      if constexpr (kUnits > 0) {
#pragma GCC unroll 8
        for (int c = 0; c < kUnits; ++c) {
          load_parts(key + c * kUnit, e);
#pragma GCC unroll 2
          for (int p = 0; p < kP; ++p) {
            const int at = c * kP + p;
#pragma GCC unroll 8
            for (int n = 0; n < N; ++n) {
              const Vector x = n < kHeld ? held[n][at] : hn::Load(tag, q + n * width + at * kStep);
              dot[p % kC][n] = hn::MulAdd(e[p], x, dot[p % kC][n]);
            }
          }
        }
      } else {
        for (int64_t at = 0; at < end; at += kUnit) {
          load_parts(key + at, e);
          add_products(tag, e, q + at, width, dot);
        }
        if (shape.tail) {
          load_parts(key + shape.width - kUnit, e);
#pragma GCC unroll 2
          for (int p = 0; p < kP; ++p) e[p] = hn::And(e[p], hn::Load(tag, head + p * kStep));
          add_products(tag, e, q + end, width, dot);
        }
      }
#pragma GCC unroll 8
      for (int n = 0; n < kC * N; ++n) sum[n / N][n % N][k] = dot[n / N][n % N];
    }
    store_sums(tag, sum, s + j);
  }
}

template <class T, int kUnits>
void dot_group(const RowShape& shape, const Run& keys, const float* q, int64_t count, const float* head, float* s) {
  constexpr int kMost = kRegisters / 4;
  const int64_t width = shape.padded(), step = count > kMost ? shared_keys(shape) : keys.count;
  for (int64_t j = 0; j < keys.count; j += step) {
    const Run some = keys.slice(j, smaller(step, keys.count - j));
    int64_t r = 0;
    const auto pass = [&]<int N>() {
      for (; r + N <= count; r += N) dot_rows<T, N, kUnits>(shape, some, q + r * width, head, s + r * kStrip + j);
    };
    if constexpr (kMost == 8) pass.template operator()<8>();
    pass.template operator()<4>();
    pass.template operator()<2>();
    pass.template operator()<1>();
  }
}

// The scores of a run: s[r][j] = q row r · key j; up to three scores past them are overwritten.
template <class T>
void dot_run(const RowShape& shape, const Run& keys, const float* q, int64_t count, const float* head, float* s) {
  constexpr int kEight = 8 / kParts<T>, kFour = 4 / kParts<T>;
  if constexpr (kRegisters == 32) {
    if (!shape.tail && shape.full == kEight) return dot_group<T, kEight>(shape, keys, q, count, head, s);
    if (!shape.tail && shape.full == kFour) return dot_group<T, kFour>(shape, keys, q, count, head, s);
  }
  return dot_group<T, 0>(shape, keys, q, count, head, s);
}

// Where several passes share the rows of a wide head, each fetches its part of the rows that come after, in their order
// (Zen 4 from DRAM, width 256, four query rows: 0.56 of plain read bandwidth in f32 and 0.64 in bf16, against 0.38 and
// 0.44).
struct Ahead {
  Run rows;
  int64_t share = 0;  // rows to a pass

  Run take() {
    const int64_t n = smaller(share, rows.count);
    const Run mine = rows.slice(0, n);
    rows = rows.slice(n, rows.count - n);
    return mine;
  }
};

// o[n][…] += Σ_j p[n][j] · v[j][…] for N rows and C units of v from element `at` on, the last of them at element
// `last`.
template <class T, int N, int C>
void add_values(const RowShape& shape, const Run& values, const float* p, int64_t at, int64_t last, float* o,
                const Run& ahead) {
  using Vector = Wide<T, N>;
  constexpr WideTag<T, N> tag;
  constexpr int kStep = kWideLanes<T, N>, kP = kWideParts<T, N>, kUnit = kP * kStep, kVectors = C * kP;
  const int64_t padded = shape.padded();
  Vector sum[N][kVectors];
#pragma GCC unroll 4
  for (int n = 0; n < N; ++n) {
#pragma GCC unroll 16
    for (int c = 0; c < kVectors; ++c) sum[n][c] = hn::Load(tag, o + n * padded + at + c * kStep);
  }
  const char* row = values.row;
  for (int64_t j = 0; j < values.count; ++j, row += values.stride) {
    const T* v = reinterpret_cast<const T*>(row);
    Vector weight[N];
#pragma GCC unroll 4
    for (int n = 0; n < N; ++n) weight[n] = hn::Set(tag, p[n * kStrip + j]);
#pragma GCC unroll 16
    for (int c = 0; c < C; ++c) {
      Vector e[kP];
      load_parts(c == C - 1 ? v + last : v + at + c * kUnit, e);
#pragma GCC unroll 2
      for (int k = 0; k < kP; ++k) {
#pragma GCC unroll 4
        for (int n = 0; n < N; ++n) sum[n][c * kP + k] = hn::MulAdd(e[k], weight[n], sum[n][c * kP + k]);
      }
    }
    if (j >= ahead.count) continue;
    for (int64_t x = 0; x < shape.bytes(); x += 64) __builtin_prefetch(ahead.row + j * ahead.stride + x, 0, 2);
  }
#pragma GCC unroll 4
  for (int n = 0; n < N; ++n) {
#pragma GCC unroll 16
    for (int c = 0; c < kVectors; ++c) hn::Store(sum[n][c], tag, o + n * padded + at + c * kStep);
  }
}

// Units from number `from` on, C at a time, then the rest.
template <class T, int N, int C>
void add_units(const RowShape& shape, const Run& values, const float* p, int64_t from, float* o, Ahead& ahead) {
  const int64_t units = shape.units() - from;
  if constexpr (C > 1) {
    if (units < C) return add_units<T, N, C - 1>(shape, values, p, from, o, ahead);
  }
  const int64_t at = from * shape.unit, next = at + (C - 1) * shape.unit;
  const int64_t last = shape.tail && units == C ? shape.width - shape.unit : next;
  add_values<T, N, C>(shape, values, p, at, last, o, ahead.take());
  if (units > C) add_units<T, N, C>(shape, values, p, from + C, o, ahead);
}

// N rows at a time, with as many units as half the registers hold.
template <class T, int N>
void add_group(const RowShape& shape, const Run& values, const float* p, int64_t count, float* o) {
  constexpr int kMost = kRegisters / 2 / N / kWideParts<T, N>, kAlone = kRegisters / 2 / kWideParts<T, 1>;
  const int64_t width = shape.padded(), columns = (shape.units() + kMost - 1) / kMost;
  const int64_t passes = (count / N + count % N) * columns, step = passes > 1 ? shared_keys(shape) : values.count;
  for (int64_t j = 0; j < values.count; j += step) {
    const int64_t after = smaller(j + step, values.count);
    const Run some = values.slice(j, after - j);
    Ahead ahead;
    if (columns > 1) ahead = {values.slice(after, smaller(step, values.count - after)), (step + passes - 1) / passes};
    int64_t r = 0;
    for (; r + N <= count; r += N) add_units<T, N, kMost>(shape, some, p + r * kStrip + j, 0, o + r * width, ahead);
    if constexpr (N > 1) {
      for (; r < count; ++r) add_units<T, 1, kAlone>(shape, some, p + r * kStrip + j, 0, o + r * width, ahead);
    }
  }
}

// o[r] += Σ_j p[r][j] · v[j] for `count` rows, for each of them in the order of the keys. Whole rows of v at a time
// where the registers allow it, as in dot_rows; a head of 64 leaves room for four query rows.
template <class T>
void add_run(const RowShape& shape, const Run& values, const float* p, int64_t count, float* o) {
  if (count == 1) return add_group<T, 1>(shape, values, p, count, o);
  if constexpr (kRegisters == 32) {
    if (shape.units() * kParts<T> <= 4) return add_group<T, 4>(shape, values, p, count, o);
  }
  return add_group<T, 2>(shape, values, p, count, o);
}

// x *= factor for `count` rows.
inline void shrink_rows(const float* factor, int64_t count, int64_t width, float* x) {
  for (int64_t r = 0; r < count; ++r) {
    if (factor[r] == 1) continue;
    for (int64_t d = 0; d < width; d += kLanes) {
      hn::Store(hn::Mul(hn::Load(f32, x + r * width + d), hn::Set(f32, factor[r])), f32, x + r * width + d);
    }
  }
}

template <class T>
bool rows_finite(const RowShape& shape, const Run& rows) {
  const V zero = hn::Zero(f32);
  V sum = zero;
  for (int64_t j = 0; j < rows.count; ++j) {
    const T* v = reinterpret_cast<const T*>(rows.row + j * rows.stride);
    for (int64_t c = 0; c < shape.units(); ++c) {
      V e[kParts<T>];
      load_parts(shape.tail && c == shape.full ? v + shape.width - shape.unit : v + c * shape.unit, e);
#pragma GCC unroll 2
      for (int k = 0; k < kParts<T>; ++k) sum = hn::MulAdd(e[k], zero, sum);
    }
  }
  return hn::AllTrue(f32, hn::Eq(sum, zero));
}

}  // namespace decode
