// Vectors of f32 and the functions of attention on them: 2^x, tanh, widening loads, finiteness.
#pragma once

namespace hn = hwy::HWY_NAMESPACE;

using F = hn::ScalableTag<float>;
using I = hn::ScalableTag<int32_t>;
using V = hn::Vec<F>;
using M = hn::Mask<F>;

constexpr F f32;
constexpr I i32;
constexpr int kLanes = static_cast<int>(hn::MaxLanes(F()));

constexpr double kPerUnit = 1.44269504088896340736;  // natural units to those of log 2
constexpr float kLog2E = static_cast<float>(kPerUnit);
constexpr float kLn2 = 0.693147180559945309417f;
constexpr float kNone = -__builtin_inff();

inline int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
inline int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }
inline int64_t round_up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

// Horner over c[0] + c[1] x + …
template <int N>
HWY_INLINE V polynomial(const float (&c)[N], V x) {
  V p = hn::Set(f32, c[N - 1]);
#pragma GCC unroll 8
  for (int n = N - 2; n >= 0; --n) p = hn::MulAdd(p, x, hn::Set(f32, c[n]));
  return p;
}

// 2^f on [0, 1) and [-1/2, 1/2], exact at 0: relative error 2.0e-9, below f32 rounding (fitted by weighted least
// squares).
constexpr float kExp2Unit[] = {
    1.0f, 0.69314706326f, 0.24022930861f, 0.055485282093f, 0.0096754515544f, 0.0012467846973f, 0.00021612914861f};
constexpr float kExp2Half[] = {
    1.0f, 0.69314718246f, 0.24022647738f, 0.055503323674f, 0.0096184369177f, 0.0013398873853f, 0.0001535336196f};

// 2^n for whole n in [-126, 127], given as f32.
HWY_INLINE V power_of_two(V n) {
  const auto exponent = hn::Add(hn::ConvertTo(i32, n), hn::Set(i32, 127));
  return hn::BitCast(f32, hn::ShiftLeft<23>(exponent));
}

// 2^t for t <= 127. NaN stays NaN. Below 2^-126 it is 0: a product with a subnormal number takes Intel's cores some 150
// cycles (ALiBi in f32: 3.2 times the time of the plain case on Sapphire Rapids before, 2026-11).
HWY_INLINE V exp2(V t) {
  const V low = hn::Set(f32, -126.0f);
#if HWY_TARGET <= HWY_AVX3
  const V fraction{_mm512_reduce_ps(t.raw, 1 | 8)};
  const __mmask16 normal = _mm512_cmp_ps_mask(t.raw, low.raw, _CMP_NLT_UQ);
  return V{_mm512_maskz_scalef_ps(normal, polynomial(kExp2Unit, fraction).raw, t.raw)};
#else
  const V clamped = hn::IfThenElse(hn::Lt(t, low), low, t);
  const V n = hn::Round(clamped);
  const V p = hn::Mul(polynomial(kExp2Half, hn::Sub(clamped, n)), power_of_two(n));
  return hn::IfThenZeroElse(hn::Lt(t, low), p);
#endif
}

// tanh by expm1(2|x|) / (expm1(2|x|) + 2): relative accuracy also near 0. Comparisons instead of Min, here and in exp2:
// Arm's would lose a NaN. slope, where asked for: 1 - tanh², to relative accuracy too: as a difference it would lose
// all its digits where the cap saturates. Past 43.5 it is below 2^-123, and 0.
HWY_INLINE V tanh(V x, V* slope = nullptr) {
  constexpr float kPast[] = {0.69314718246f,   0.24022647738f,   0.055503323674f,
                             0.0096184369177f, 0.0013398873853f, 0.0001535336196f};
  constexpr double kTwice = 2 * kPerUnit;
  const V high = hn::Set(f32, static_cast<float>(kTwice));
  const V low = hn::Set(f32, static_cast<float>(kTwice - static_cast<double>(static_cast<float>(kTwice))));
  const V most = hn::Set(f32, 43.5f), one = hn::Set(f32, 1.0f), all = hn::Abs(x);
  const M past = hn::Gt(all, most);
  const V size = hn::IfThenElse(past, most, all);
  const V n = hn::Round(hn::Mul(size, high));
  const V f = hn::MulAdd(size, low, hn::MulSub(size, high, n));
  const V power = power_of_two(n);
  const V e = hn::MulAdd(hn::Mul(f, polynomial(kPast, f)), power, hn::Sub(power, one));
  const V below = hn::Add(e, hn::Set(f32, 2.0f));
  if (slope) {
    const V inverse = hn::Div(one, below);
    *slope = hn::IfThenZeroElse(past, hn::Mul(hn::Mul(hn::Mul(hn::Set(f32, 4.0f), hn::Add(e, one)), inverse), inverse));
  }
  return hn::CopySign(hn::Div(e, below), x);
}

// The widened value of one element.
inline float widen(float x) { return x; }
inline float widen(bf16 x) {
  const uint32_t bits = static_cast<uint32_t>(x.bits) << 16;
  float y;
  memcpy(&y, &bits, 4);
  return y;
}
inline float widen(f16 x) { return static_cast<float>(x); }
inline float widen(int8_t x) { return static_cast<float>(x); }

HWY_INLINE V load_widened(const float* p) { return hn::LoadU(f32, p); }
HWY_INLINE V load_widened(const bf16* p) {
  const hn::Rebind<uint16_t, F> half;
  return hn::BitCast(f32, hn::ShiftLeft<16>(hn::PromoteTo(hn::ScalableTag<uint32_t>(), hn::LoadU(half, &p->bits))));
}
HWY_INLINE V load_widened(const f16* p) {
  const hn::Rebind<hwy::float16_t, F> half;
  const V x = hn::PromoteTo(f32, hn::LoadU(half, reinterpret_cast<const hwy::float16_t*>(p)));
#if HWY_TARGET == HWY_SSE4
  // Highway 1.0.3 without F16C widens infinity and NaN to finite numbers.
  const hn::ScalableTag<uint32_t> u32;
  const auto bits = hn::PromoteTo(u32, hn::LoadU(hn::Rebind<uint16_t, F>(), &p->bits));
  const auto top = hn::Set(u32, 0x7c00);
  const auto special = hn::Or(hn::BitCast(u32, x), hn::Set(u32, 0x7f800000));
  return hn::IfThenElse(hn::RebindMask(f32, hn::Eq(hn::And(bits, top), top)), hn::BitCast(f32, special), x);
#else
  return x;
#endif
}
HWY_INLINE V load_widened(const int8_t* p) {
  const hn::Rebind<int8_t, F> quarter;
  return hn::ConvertTo(f32, hn::PromoteTo(i32, hn::LoadU(quarter, p)));
}

// Rounds to nearest even, as base/dtype.h does; NaN stays NaN.
inline void narrow(float x, float* to) { *to = x; }
inline void narrow(float x, bf16* to) {
  uint32_t bits;
  memcpy(&bits, &x, 4);
  const bool nan = (bits & 0x7fffffffu) > 0x7f800000u;
  to->bits = static_cast<uint16_t>(nan ? (bits >> 16) | 0x40 : (bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}
inline void narrow(float x, f16* to) { *to = f16(x); }

HWY_INLINE void store_narrowed(V x, float* to) { hn::StoreU(x, f32, to); }
HWY_INLINE void store_narrowed(V x, bf16* to) {
  const hn::ScalableTag<uint32_t> u32;
  const hn::Rebind<uint16_t, F> half;
  const auto bits = hn::BitCast(u32, x);
  const auto even = hn::And(hn::ShiftRight<16>(bits), hn::Set(u32, 1));
  const auto rounded = hn::Add(bits, hn::Add(even, hn::Set(u32, 0x7fff)));
  const auto quiet = hn::Or(bits, hn::Set(u32, 0x400000));
  const auto kept = hn::IfThenElse(hn::RebindMask(u32, hn::IsNaN(x)), quiet, rounded);
  hn::StoreU(hn::TruncateTo(half, hn::ShiftRight<16>(kept)), half, &to->bits);
}
HWY_INLINE void store_narrowed(V x, f16* to) {
#if HWY_TARGET <= HWY_AVX2 || HWY_ARCH_ARM
  const hn::Rebind<hwy::float16_t, F> half;
  hn::StoreU(hn::DemoteTo(half, x), half, reinterpret_cast<hwy::float16_t*>(to));
#else
  HWY_ALIGN float lanes[kLanes];
  hn::Store(x, f32, lanes);
  for (int n = 0; n < kLanes; ++n) narrow(lanes[n], to + n);
#endif
}

// Whether no element of the rows is NaN or infinite.
inline bool all_finite(const float* rows, int64_t stride, int64_t count, int64_t width) {
  const V zero = hn::Zero(f32);
  // Four sums: one would wait for itself.
  V sum[4] = {zero, zero, zero, zero};
  float tail = 0;
  for (int64_t r = 0; r < count; ++r) {
    const float* row = rows + r * stride;
    int64_t c = 0;
    for (; c + 4 * kLanes <= width; c += 4 * kLanes)
      for (int n = 0; n < 4; ++n) sum[n] = hn::MulAdd(hn::LoadU(f32, row + c + n * kLanes), zero, sum[n]);
    for (; c + kLanes <= width; c += kLanes) sum[0] = hn::MulAdd(hn::LoadU(f32, row + c), zero, sum[0]);
    for (; c < width; ++c) tail += row[c] * 0.0f;
  }
  const V all = hn::Add(hn::Add(sum[0], sum[1]), hn::Add(sum[2], sum[3]));
  return hn::AllTrue(f32, hn::Eq(all, zero)) && tail == 0.0f;
}
