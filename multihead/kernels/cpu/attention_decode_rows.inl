// The two passes of decode over the cache: scores of four keys at a time, and o += p · v; lanes run along the head width.

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

// Where element d of a row stands in the order of q and o.
inline int64_t place_of(const RowShape& s, int64_t d) {
  const int64_t at = s.tail && d >= s.full * s.unit ? d - (s.width - s.unit) + s.full * s.unit : d;
  const int64_t lane = at % s.unit;
  return s.unit == kLanes ? at : at - lane + lane % 2 * kLanes + lane / 2;
}

// Four sums, one of each vector.
HWY_INLINE hn::Vec<hn::FixedTag<float, 4>> sums_of_four(V a, V b, V c, V d) {
  const hn::ScalableTag<double> f64;
  const V ab = hn::Add(hn::InterleaveLower(f32, a, b), hn::InterleaveUpper(f32, a, b));
  const V cd = hn::Add(hn::InterleaveLower(f32, c, d), hn::InterleaveUpper(f32, c, d));
  const auto ab2 = hn::BitCast(f64, ab), cd2 = hn::BitCast(f64, cd);
  const V low = hn::BitCast(f32, hn::InterleaveLower(f64, ab2, cd2));
  const V high = hn::BitCast(f32, hn::InterleaveUpper(f64, ab2, cd2));
  const V sum = hn::Add(low, high);
#if HWY_TARGET <= HWY_AVX3
  const hn::Half<F> f256;
  const hn::Half<decltype(f256)> f128;
  const auto half = hn::Add(hn::LowerHalf(f256, sum), hn::UpperHalf(f256, sum));
  return hn::Add(hn::LowerHalf(f128, half), hn::UpperHalf(f128, half));
#elif HWY_TARGET == HWY_AVX2
  const hn::Half<F> f128;
  return hn::Add(hn::LowerHalf(f128, sum), hn::UpperHalf(f128, sum));
#else
  return sum;
#endif
}

constexpr int kRegisters = HWY_TARGET <= HWY_AVX3 || HWY_ARCH_ARM_A64 ? 32 : 16;

#ifndef AH
#define AH 1
#define HINT 2
#endif
template <int kBytes>
HWY_INLINE void fetch_row(const char* row, int64_t bytes) {
  if constexpr (AH < 0) return;
  if constexpr (kBytes > 0) {
#pragma GCC unroll 8
    for (int x = 0; x < kBytes; x += 64) __builtin_prefetch(row + x, 0, HINT);
  } else {
    for (int64_t x = 0; x < bytes; x += 64) __builtin_prefetch(row + x, 0, HINT);
  }
}

HWY_INLINE void store_four(const V (&sum)[4], float* s) {
  const hn::FixedTag<float, 4> four;
  hn::StoreU(sums_of_four(sum[0], sum[1], sum[2], sum[3]), four, s);
}

// s[j] = q · key j for one row. Each key is read from its first byte to its last: four rows read in step are a pattern
// the prefetchers do not know (Zen 4, f32 from DRAM: 10 GB/s against 27). kUnits > 0: that many units, no tail, and q
// stays in registers.
template <class T, int kUnits>
void dot_row(const RowShape& shape, const char* const* rows, int64_t keys, const float* q, const float* head, float* s) {
  constexpr int kP = kParts<T>, kUnit = kP * kLanes, kHeld = kUnits > 0 ? kUnits * kP : 1;
  V held[kHeld];
#pragma GCC unroll 8
  for (int c = 0; c < kHeld; ++c) held[c] = hn::Load(f32, q + c * kLanes);
  const int64_t end = shape.full * kUnit;
  for (int64_t j = 0; j < keys; j += 4) {
    V sum[4], e[kP];
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) {
      const T* key = reinterpret_cast<const T*>(rows[j + k]);
      sum[k] = hn::Zero(f32);
      fetch_row<kUnits * kUnit * static_cast<int>(sizeof(T))>(rows[j + k + AH], shape.bytes());
      if constexpr (kUnits > 0) {
#pragma GCC unroll 8
        for (int c = 0; c < kUnits; ++c) {
          load_parts(key + c * kUnit, e);
#pragma GCC unroll 2
          for (int p = 0; p < kP; ++p) sum[k] = hn::MulAdd(e[p], held[c * kP + p], sum[k]);
        }
        continue;
      }
      for (int64_t at = 0; at < end; at += kUnit) {
        load_parts(key + at, e);
#pragma GCC unroll 2
        for (int p = 0; p < kP; ++p) sum[k] = hn::MulAdd(e[p], hn::Load(f32, q + at + p * kLanes), sum[k]);
      }
      if (!shape.tail) continue;
      load_parts(key + shape.width - kUnit, e);
#pragma GCC unroll 2
      for (int p = 0; p < kP; ++p) {
        const V kept = hn::And(e[p], hn::Load(f32, head + p * kLanes));
        sum[k] = hn::MulAdd(kept, hn::Load(f32, q + end + p * kLanes), sum[k]);
      }
    }
    store_four(sum, s + j);
  }
}

// Copies rows as f32 in the order of q and o, each read from its first byte to its last, for several query rows to share.
template <class T>
void stage_rows(const RowShape& shape, const char* const* rows, int64_t count, const float* head, float* to) {
  constexpr int kP = kParts<T>, kUnit = kP * kLanes;
  const int64_t end = shape.full * kUnit;
  for (int64_t j = 0; j < count; ++j, to += shape.padded()) {
    const T* row = reinterpret_cast<const T*>(rows[j]);
    V e[kP];
    fetch_row<0>(rows[j + AH], shape.bytes());
    for (int64_t at = 0; at < end; at += kUnit) {
      load_parts(row + at, e);
#pragma GCC unroll 2
      for (int p = 0; p < kP; ++p) hn::Store(e[p], f32, to + at + p * kLanes);
    }
    if (!shape.tail) continue;
    load_parts(row + shape.width - kUnit, e);
#pragma GCC unroll 2
    for (int p = 0; p < kP; ++p) {
      hn::Store(hn::And(e[p], hn::Load(f32, head + p * kLanes)), f32, to + end + p * kLanes);
    }
  }
}

// s[n][0 … 3] = q row n · four staged keys.
template <int N>
HWY_INLINE void dot_tile(const float* keys, int64_t width, const float* q, float* s) {
  V sum[N][4];
#pragma GCC unroll 4
  for (int n = 0; n < N; ++n) {
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) sum[n][k] = hn::Zero(f32);
  }
  for (int64_t at = 0; at < width; at += kLanes) {
    V e[4];
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) e[k] = hn::Load(f32, keys + k * width + at);
#pragma GCC unroll 4
    for (int n = 0; n < N; ++n) {
      const V x = hn::Load(f32, q + n * width + at);
#pragma GCC unroll 4
      for (int k = 0; k < 4; ++k) sum[n][k] = hn::MulAdd(e[k], x, sum[n][k]);
    }
  }
#pragma GCC unroll 4
  for (int n = 0; n < N; ++n) store_four(sum[n], s + n * kDecodeBlock);
}

// The scores of a block: s[r][j] = q row r · key j. `rows` is padded to a multiple of four.
template <class T>
void dot_block(const RowShape& shape, const char* const* rows, int64_t keys, const float* q, int64_t count,
               const float* head, float* s, float* stage) {
  if (count == 1) {
    constexpr int kMost = kRegisters / 4 / kParts<T>;
    if constexpr (kRegisters == 32) {
      if (!shape.tail && shape.full == kMost) return dot_row<T, kMost>(shape, rows, keys, q, head, s);
      if (!shape.tail && shape.full == kMost / 2) return dot_row<T, kMost / 2>(shape, rows, keys, q, head, s);
    }
    return dot_row<T, 0>(shape, rows, keys, q, head, s);
  }
  const int64_t width = shape.padded();
  for (int64_t j = 0; j < keys; j += 4) {
    stage_rows<T>(shape, rows + j, 4, head, stage);
    int64_t r = 0;
    if constexpr (kRegisters == 32) {
      for (; r + 4 <= count; r += 4) dot_tile<4>(stage, width, q + r * width, s + r * kDecodeBlock + j);
    }
    for (; r + 2 <= count; r += 2) dot_tile<2>(stage, width, q + r * width, s + r * kDecodeBlock + j);
    if (r < count) dot_tile<1>(stage, width, q + r * width, s + r * kDecodeBlock + j);
  }
}

// o[n][…] = o[n][…] · shrink[n] + Σ_j p[n][j] · v[j][…] for N rows and C units of v from element `at` on; kTail: the
// last of them ends with the row.
template <class T, int N, int C, bool kTail>
void add_values(const RowShape& shape, const char* const* rows, int64_t keys, const float* p, const float* shrink,
                int64_t at, float* o) {
  constexpr int kP = kParts<T>, kUnit = kP * kLanes, kVectors = C * kP;
  const int64_t padded = shape.padded();
  V sum[N][kVectors];
#pragma GCC unroll 4
  for (int n = 0; n < N; ++n) {
#pragma GCC unroll 8
    for (int c = 0; c < kVectors; ++c) {
      sum[n][c] = hn::Mul(hn::Load(f32, o + n * padded + at + c * kLanes), hn::Set(f32, shrink[n]));
    }
  }
  const int64_t last = kTail ? shape.width - kUnit : at + (C - 1) * kUnit;
  for (int64_t j = 0; j < keys; ++j) {
    const T* v = reinterpret_cast<const T*>(rows[j]);
    if (N == 1 && at == 0) fetch_row<0>(rows[j + AH], shape.bytes());
    V weight[N];
#pragma GCC unroll 4
    for (int n = 0; n < N; ++n) weight[n] = hn::Set(f32, p[n * kDecodeBlock + j]);
#pragma GCC unroll 8
    for (int c = 0; c < C; ++c) {
      V e[kP];
      load_parts(c == C - 1 ? v + last : v + at + c * kUnit, e);
#pragma GCC unroll 2
      for (int k = 0; k < kP; ++k) {
#pragma GCC unroll 4
        for (int n = 0; n < N; ++n) sum[n][c * kP + k] = hn::MulAdd(e[k], weight[n], sum[n][c * kP + k]);
      }
    }
  }
#pragma GCC unroll 4
  for (int n = 0; n < N; ++n) {
#pragma GCC unroll 8
    for (int c = 0; c < kVectors; ++c) hn::Store(sum[n][c], f32, o + n * padded + at + c * kLanes);
  }
}

// All units of N rows, as many at a time as half the registers hold.
template <class T, int N>
void add_values_of(const RowShape& shape, const char* const* rows, int64_t keys, const float* p, const float* shrink,
                   float* o) {
  constexpr int kRoom = kRegisters / 2 / N / kParts<T>;
  constexpr int kMost = kRoom < 8 ? kRoom : 8;
  const int64_t units = shape.units();
  const auto pass = [&]<int C>(int64_t& from) {
    while (units - from >= C) {
      const int64_t at = from * shape.unit;
      from += C;
      if (from == units && shape.tail) {
        add_values<T, N, C, true>(shape, rows, keys, p, shrink, at, o);
      } else {
        add_values<T, N, C, false>(shape, rows, keys, p, shrink, at, o);
      }
    }
  };
  int64_t from = 0;
  if constexpr (kMost >= 8) pass.template operator()<8>(from);
  if constexpr (kMost >= 4) pass.template operator()<4>(from);
  if constexpr (kMost >= 2) pass.template operator()<2>(from);
  pass.template operator()<1>(from);
}

// Staged values stay in half of a 32 KiB L1 while the query rows pass over them.
inline int64_t staged_keys(const RowShape& shape) { return larger(8, smaller(kDecodeBlock, 4096 / shape.padded())); }

// o = o · shrink + p · v for `count` rows.
template <class T>
void add_block(const RowShape& shape, const char* const* rows, int64_t keys, const float* p, const float* shrink,
               int64_t count, const float* head, float* o, float* stage) {
  if (count == 1) return add_values_of<T, 1>(shape, rows, keys, p, shrink, o);
  const RowShape staged = row_shape(shape.padded(), DType::f32);
  const int64_t width = shape.padded(), step = staged_keys(shape);
  const char* lines[kDecodeBlock + 16];
  float factors[kDecodeMostRows];
  for (int64_t n = 0; n < step; ++n) lines[n] = reinterpret_cast<const char*>(stage + n * width);
  for (int64_t r = 0; r < count; ++r) factors[r] = shrink[r];
  for (int64_t j = 0; j < keys; j += step) {
    const int64_t some = smaller(step, keys - j);
    stage_rows<T>(shape, rows + j, some, head, stage);
    int64_t r = 0;
    if constexpr (kRegisters == 32) {
      for (; r + 4 <= count; r += 4) {
        add_values_of<float, 4>(staged, lines, some, p + r * kDecodeBlock + j, factors + r, o + r * width);
      }
    }
    for (; r + 2 <= count; r += 2) {
      add_values_of<float, 2>(staged, lines, some, p + r * kDecodeBlock + j, factors + r, o + r * width);
    }
    if (r < count) add_values_of<float, 1>(staged, lines, some, p + r * kDecodeBlock + j, factors + r, o + r * width);
    for (r = 0; r < count; ++r) factors[r] = 1;
  }
}

template <class T>
bool rows_finite(const RowShape& shape, const char* const* rows, int64_t keys) {
  const V zero = hn::Zero(f32);
  V sum = zero;
  for (int64_t j = 0; j < keys; ++j) {
    const T* v = reinterpret_cast<const T*>(rows[j]);
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
