// Decode of an i8 cache by products of bytes: what meets the cache is cut into three digits of 8 bits, so sums are
// whole numbers and exact. Of f32, a query keeps 23 bits below its largest element, the weights of a block below the
// largest of them: no more is lost than f32 sums round. The instruction multiplies unsigned by signed bytes: the cache
// is taken plus 128, and 128 times the digits off the sums.
#pragma once

#include "multihead/kernels/cpu/attention/decode/chunk.inl"
#include "multihead/kernels/cpu/attention/decode/dot.inl"
#include "multihead/kernels/cpu/attention/decode/rows.inl"
#include "multihead/kernels/cpu/attention/fma/forward.inl"
#include "multihead/kernels/cpu/vector_math.inl"

namespace decode {

constexpr int kDigits = 3, kByteUnit = 4 * kLanes;
constexpr float kLargest = 127 * 65536;  // what rounds up from here still has three digits

struct Digits {
  __m512i of[kDigits];  // from the lowest; 32 bits each
};

HWY_INLINE Digits digits_of(V x) {
  Digits digits;
  __m512i rest = _mm512_cvtps_epi32(x.raw);
#pragma GCC unroll 3
  for (int d = 0; d < kDigits; ++d) {
    digits.of[d] = _mm512_srai_epi32(_mm512_slli_epi32(rest, 24), 24);
    rest = _mm512_srai_epi32(_mm512_sub_epi32(rest, digits.of[d]), 8);
  }
  return digits;
}

// What a whole number is worth where the largest is `top`, and the number that 1 is. A `top` that is not finite makes
// all of them that; one too small for its reciprocal counts as 0.
struct Fixed {
  float unit = 0, inverse = 0;
  explicit Fixed(float top) {
    if (top < 0x1p-104f) return;
    unit = top / kLargest;
    inverse = top <= 0x1.fffffep127f ? kLargest / top : 0;
  }
};

HWY_INLINE __m512i from_128(const void* p) { return _mm512_xor_si512(_mm512_loadu_si512(p), _mm512_set1_epi8(-128)); }

// A row of q: three rows of digits, and its unit behind them.
inline void query_digits(const View& q, int64_t at, const RowShape& shape, float* to) {
  HWY_ALIGN float x[kDecodeMostWidth + kByteUnit];
  HWY_ALIGN int8_t digits[kDigits][kDecodeMostWidth + kByteUnit];
  const int64_t width = shape.width, padded = shape.padded(), straight = shape.full * kByteUnit;
  RowShape in_order;
  in_order.width = width;
  in_order.unit = kLanes;
  in_order.full = width / kLanes;
  query_row(q, at, in_order, x);
  for (int64_t d = width; d < round_up(width, kLanes); ++d) x[d] = 0;
  V top = hn::Zero(f32);
  bool nan = false;
  for (int64_t d = 0; d < width; d += kLanes) {
    const V size = hn::Abs(hn::Load(f32, x + d));
    nan |= !hn::AllTrue(f32, hn::Eq(size, size));
    top = hn::Max(top, size);
  }
  const Fixed fixed(nan ? __builtin_nanf("") : hn::GetLane(hn::MaxOfLanes(f32, top)));
  for (int64_t d = 0; d < width; d += kLanes) {
    const Digits cut = digits_of(hn::Mul(hn::Load(f32, x + d), hn::Set(f32, fixed.inverse)));
#pragma GCC unroll 3
    for (int k = 0; k < kDigits; ++k)
      _mm_store_si128(reinterpret_cast<__m128i*>(digits[k] + d), _mm512_cvtepi32_epi8(cut.of[k]));
  }
  int8_t* bytes = reinterpret_cast<int8_t*>(to);
  for (int k = 0; k < kDigits; ++k) {
    memcpy(bytes + k * padded, digits[k], static_cast<size_t>(straight));
    memcpy(bytes + (k + 1) * padded - (width - straight), digits[k] + straight, static_cast<size_t>(width - straight));
  }
  memcpy(bytes + kDigits * padded, &fixed.unit, sizeof(float));
}

// s[n][j] = q row n · key j without the unit of q and the key's scale, for N rows. kUnits > 0: a key has that many
// units and no tail.
template <int N, int kUnits>
void dot_bytes(const RowShape& shape, const Run& keys, const float* q, float* s) {
  constexpr int K = keys_at_once(N), kSums = N * kDigits;
  const int64_t padded = shape.padded(), units = kUnits > 0 ? kUnits : shape.units();
  const int8_t* digits = reinterpret_cast<const int8_t*>(q);
  const auto digits_at = [&](int n, int64_t c) HWY_ATTR __attribute__((always_inline)) {
    return _mm512_load_si512(digits + (n / kDigits * 4 + n % kDigits) * padded + c * kByteUnit);
  };
  __m512i start[kSums];
#pragma GCC unroll 12
  for (int n = 0; n < kSums; ++n) {
    __m512i sum = _mm512_setzero_si512();
    for (int64_t c = 0; c < units; ++c) sum = _mm512_dpbusd_epi32(sum, _mm512_set1_epi8(-128), digits_at(n, c));
    start[n] = _mm512_sub_epi32(_mm512_setzero_si512(), sum);
  }
  const char* row = keys.row;
  const int64_t last = keys.count - 1;
  for (int64_t j = 0; j <= last; j += K) {
    V sum[1][N][K];
#pragma GCC unroll 4
    for (int k = 0; k < K; ++k) {
      __m512i dot[kSums];
#pragma GCC unroll 12
      for (int n = 0; n < kSums; ++n) dot[n] = start[n];
#pragma GCC unroll 2
      for (int64_t c = 0; c < units; ++c) {
        const bool whole = kUnits > 0 || c < shape.full;
        const __m512i e = from_128(row + (whole ? c * kByteUnit : shape.width - kByteUnit));
#pragma GCC unroll 12
        for (int n = 0; n < kSums; ++n) dot[n] = _mm512_dpbusd_epi32(dot[n], e, digits_at(n, c));
      }
      row += j + k < last ? keys.stride : 0;
#pragma GCC unroll 4
      for (int n = 0; n < N; ++n) {
        const int at = n * kDigits;
        const V upper{_mm512_cvtepi32_ps(dot[at + 2])};
        const V lower{_mm512_cvtepi32_ps(_mm512_add_epi32(_mm512_slli_epi32(dot[at + 1], 8), dot[at]))};
        sum[0][n][k] = hn::MulAdd(upper, hn::Set(f32, 65536.0f), lower);
      }
    }
    store_sums(f32, sum, s + j);
  }
}

template <int kUnits>
void dot_byte_group(const RowShape& shape, const Run& keys, const float* q, int64_t count, float* s) {
  const int64_t width = shape.padded(), step = count > 2 ? shared_keys(shape) : keys.count;
  for (int64_t j = 0; j < keys.count; j += step) {
    const Run some = keys.slice(j, smaller(step, keys.count - j));
    int64_t r = 0;
    for (; r + 2 <= count; r += 2) dot_bytes<2, kUnits>(shape, some, q + r * width, s + r * kStrip + j);
    for (; r < count; ++r) dot_bytes<1, kUnits>(shape, some, q + r * width, s + r * kStrip + j);
  }
}

inline void dot_byte_run(const RowShape& shape, const Run& keys, const float* q, int64_t count, const float*,
                         float* s) {
  if (!shape.tail && shape.full == 2) {
    dot_byte_group<2>(shape, keys, q, count, s);
  } else if (!shape.tail && shape.full == 1) {
    dot_byte_group<1>(shape, keys, q, count, s);
  } else {
    dot_byte_group<0>(shape, keys, q, count, s);
  }
  for (int64_t r = 0; r < count; ++r) {
    float* mine = s + r * kStrip;
    float unit;
    memcpy(&unit, reinterpret_cast<const char*>(q + r * shape.padded()) + kDigits * shape.padded(), sizeof unit);
    int64_t j = 0;
    for (; j + kLanes <= keys.count; j += kLanes) {
      hn::StoreU(hn::Mul(hn::LoadU(f32, mine + j), hn::Set(f32, unit)), f32, mine + j);
    }
    for (; j < keys.count; ++j) mine[j] *= unit;
  }
}

// p from the weights of four keys to their three digits, lowest first. The fourth word of a four has the unit (the
// first), then the sums of the digits (the next three).
inline void digit_weights(int64_t keys, float* p) {
  const __m512i by_digit = _mm512_broadcast_i32x4(_mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15));
  const int64_t end = round_up(keys, kLanes);
  for (int64_t n = keys; n < end; ++n) p[n] = 0;
  V top = hn::Zero(f32);
  for (int64_t n = 0; n < end; n += kLanes) top = hn::Max(top, hn::Abs(hn::Load(f32, p + n)));
  const Fixed fixed(hn::GetLane(hn::MaxOfLanes(f32, top)));
  const V inverse = hn::Set(f32, fixed.inverse);
  __m512i sums[kDigits] = {};
  for (int64_t n = 0; n < end; n += kLanes) {
    const Digits cut = digits_of(hn::Mul(hn::Load(f32, p + n), inverse));
    __m512i bytes = _mm512_setzero_si512();
#pragma GCC unroll 3
    for (int k = 0; k < kDigits; ++k) {
      sums[k] = _mm512_add_epi32(sums[k], cut.of[k]);
      const __m512i byte = _mm512_and_si512(cut.of[k], _mm512_set1_epi32(255));
      bytes = _mm512_or_si512(bytes, _mm512_slli_epi32(byte, static_cast<unsigned>(8 * k)));
    }
    _mm512_store_si512(p + n, _mm512_shuffle_epi8(bytes, by_digit));
  }
  p[3] = fixed.unit;
  for (int k = 0; k < kDigits; ++k) {
    const int32_t sum = _mm512_reduce_add_epi32(sums[k]);
    memcpy(p + 7 + 4 * k, &sum, sizeof sum);
  }
}

// sums[digit][…] += Σ_j digit of p[j] · (v[j][…] + 128) for C units of v from element `at` on, the last of them at
// element `last`. Keys go in the fours of p; those of the first and the last that are not in the run have a weight of
// 0.
template <int C>
struct AddBytes {
  __m512i sum[C][kDigits][4];

  HWY_INLINE void unit(int c, const char* const (&row)[4], int64_t at, const uint32_t (&weight)[kDigits]) {
    const __m512i a = from_128(row[0] + at), b = from_128(row[1] + at);
    const __m512i x = from_128(row[2] + at), y = from_128(row[3] + at);
    const __m512i ab = _mm512_unpacklo_epi8(a, b), ab2 = _mm512_unpackhi_epi8(a, b);
    const __m512i xy = _mm512_unpacklo_epi8(x, y), xy2 = _mm512_unpackhi_epi8(x, y);
    const __m512i e[4] = {_mm512_unpacklo_epi16(ab, xy), _mm512_unpackhi_epi16(ab, xy), _mm512_unpacklo_epi16(ab2, xy2),
                          _mm512_unpackhi_epi16(ab2, xy2)};
#pragma GCC unroll 4
    for (int n = 0; n < 4; ++n) {
#pragma GCC unroll 3
      for (int k = 0; k < kDigits; ++k)
        sum[c][k][n] = _mm512_dpbusd_epi32(sum[c][k][n], e[n], _mm512_set1_epi32(static_cast<int32_t>(weight[k])));
    }
  }
};

template <int C>
void add_bytes(const RowShape& shape, const Run& values, const float* p, int64_t at, int64_t last, int32_t* sums) {
  const int64_t before = static_cast<int64_t>(reinterpret_cast<uintptr_t>(p) / sizeof(float) % 4);
  const int64_t stride = values.stride, padded = shape.padded();
  AddBytes<C> bytes;
#pragma GCC unroll 24
  for (int n = 0; n < 12 * C; ++n)
    bytes.sum[n / 12][n / 4 % 3][n % 4] =
        _mm512_load_si512(sums + n / 4 % 3 * padded + n / 12 * kByteUnit + n % 4 * kLanes);
  for (int64_t j = -before; j < values.count; j += 4) {
    const char* row[4];
    uint32_t held = 0, weight[kDigits];
    if (j >= 0 && j + 4 <= values.count) {
      held = ~0u;
#pragma GCC unroll 4
      for (int k = 0; k < 4; ++k) row[k] = values.row + (j + k) * stride;
    } else {
      for (int64_t k = 0; k < 4; ++k) {
        const bool there = j + k >= 0 && j + k < values.count;
        row[k] = values.row + (there ? j + k : 0) * stride;
        held |= there ? 255u << (8 * k) : 0;
      }
    }
#pragma GCC unroll 3
    for (int k = 0; k < kDigits; ++k) {
      memcpy(weight + k, p + j + k, sizeof(uint32_t));
      weight[k] &= held;
    }
#pragma GCC unroll 2
    for (int c = 0; c < C; ++c) bytes.unit(c, row, c == C - 1 ? last : at + c * kByteUnit, weight);
  }
#pragma GCC unroll 24
  for (int n = 0; n < 12 * C; ++n)
    _mm512_store_si512(sums + n / 4 % 3 * padded + n / 12 * kByteUnit + n % 4 * kLanes,
                       bytes.sum[n / 12][n / 4 % 3][n % 4]);
}

inline void add_byte_run(const RowShape& shape, const Run& values, const float* p, int64_t count, float* o) {
  int32_t* sums = reinterpret_cast<int32_t*>(o);
  const int64_t width = shape.padded(), units = shape.units();
  const int64_t step = count * units > 2 ? shared_keys(shape) : values.count;
  for (int64_t j = 0; j < values.count; j += step) {
    const Run some = values.slice(j, smaller(step, values.count - j));
    for (int64_t r = 0; r < count; ++r) {
      for (int64_t c = 0; c < units; c += 2) {
        const int64_t at = c * kByteUnit, most = smaller(2, units - c);
        const int64_t last = c + most > shape.full ? shape.width - kByteUnit : at + (most - 1) * kByteUnit;
        int32_t* mine = sums + r * kDigits * width + at;
        if (most == 2) add_bytes<2>(shape, some, p + r * kStrip + j, at, last, mine);
        if (most == 1) add_bytes<1>(shape, some, p + r * kStrip + j, at, last, mine);
      }
    }
  }
}

// o += what the sums of a block are worth.
inline void gather_bytes(const RowShape& shape, const float* p, const int32_t* sums, float* o) {
  const int64_t width = shape.padded();
  const V unit = hn::Set(f32, p[3]);
  int32_t digits[kDigits];
  for (int k = 0; k < kDigits; ++k) memcpy(digits + k, p + 7 + 4 * k, sizeof(int32_t));
  for (int64_t d = 0; d < width; d += kLanes) {
    V x = hn::Zero(f32);
#pragma GCC unroll 3
    for (int k = kDigits - 1; k >= 0; --k) {
      const auto sum = hn::Sub(hn::Load(i32, sums + k * width + d), hn::Set(i32, 128 * digits[k]));
      x = hn::MulAdd(x, hn::Set(f32, 256.0f), hn::ConvertTo(f32, sum));
    }
    hn::Store(hn::MulAdd(x, unit, hn::Load(f32, o + d)), f32, o + d);
  }
}

inline void use_bytes(const AttentionForwardArgs& a, DecodePlan& plan) {
  if (a.kv.k.dtype == DType::i8 && a.q.size[3] >= kByteUnit) {
    plan.k = row_shape(a.q.size[3], 1, kByteUnit);
    plan.dot = dot_byte_run;
    plan.query = query_digits;
  }
  if (a.kv.v.dtype == DType::i8 && a.o.size[3] >= kByteUnit) {
    plan.v = row_shape(a.o.size[3], 1, kByteUnit);
    plan.v.fours = true;
    plan.add = add_byte_run;
    plan.weights = digit_weights;
    plan.gather = gather_bytes;
  }
}

}  // namespace decode
