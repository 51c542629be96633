// Conversions of the 16-bit float types, in integer arithmetic so that every machine gives the same bits.
#include "multihead/base/dtype.h"

namespace mh {

namespace {

constexpr uint32_t kInfinity = 0x7f800000;
constexpr uint32_t kHalfOverflow = 0x477ff000;  // 65520: from here on the nearest f16 is infinity
constexpr uint32_t kHalfNormal = 0x38800000;    // 2^-14: the smallest normal f16
constexpr uint32_t kExponentGap = (127 - 15) << 23;

// Round to nearest even in the lowest `dropped` bits of `u`, which is then shifted down by them.
constexpr uint32_t round_off(uint32_t u, int dropped) {
  return (u + (1u << (dropped - 1)) - 1 + ((u >> dropped) & 1)) >> dropped;
}

constexpr uint16_t bf16_bits(uint32_t u) {
  if ((u & 0x7fffffff) > kInfinity) return static_cast<uint16_t>((u >> 16) | 0x40);
  return static_cast<uint16_t>(round_off(u, 16));
}

// An f16 below 2^-14 counts steps of 2^-24: the significand, with its hidden bit, is shifted down to that unit.
constexpr uint32_t subnormal_half(uint32_t magnitude) {
  const int shift = 126 - static_cast<int>(magnitude >> 23);
  if (shift > 24) return 0;  // below half a step
  return round_off((magnitude & 0x7fffff) | 0x800000, shift);
}

constexpr uint16_t f16_bits(uint32_t u) {
  const uint32_t sign = (u >> 16) & 0x8000;
  const uint32_t magnitude = u & 0x7fffffff;
  uint32_t half = 0;
  if (magnitude > kInfinity) {
    half = 0x7e00 | ((magnitude >> 13) & 0x3ff);
  } else if (magnitude >= kHalfOverflow) {
    half = 0x7c00;
  } else if (magnitude < kHalfNormal) {
    half = subnormal_half(magnitude);
  } else {
    half = round_off(magnitude - kExponentGap, 13);
  }
  return static_cast<uint16_t>(sign | half);
}

constexpr uint32_t f32_bits(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000) << 16;
  const uint32_t exponent = (half >> 10) & 0x1f;
  uint32_t significand = half & 0x3ff;
  if (exponent == 0x1f) return sign | kInfinity | (significand << 13);
  if (exponent != 0) return sign | ((exponent << 23) + kExponentGap) | (significand << 13);
  if (significand == 0) return sign;
  const int lift = std::countl_zero(significand) - 21;  // brings the top bit to bit 10
  significand = (significand << lift) & 0x3ff;
  return sign | (static_cast<uint32_t>(113 - lift) << 23) | (significand << 13);
}

// The f32 next to `value` on the side of zero with its lowest bit set, where `value` is no f32: a second rounding,
// to fewer bits, then gives what one rounding would have given.
float round_to_odd(double value) {
  const float nearest = static_cast<float>(value);
  const double back = nearest;
  if (back == value || value != value) return nearest;
  uint32_t u = std::bit_cast<uint32_t>(nearest);
  const bool away_from_zero = value < 0 ? back < value : back > value;
  if (away_from_zero) --u;
  return std::bit_cast<float>(u | 1);
}

}  // namespace

bf16::bf16(float value) : bits(bf16_bits(std::bit_cast<uint32_t>(value))) {}
bf16::bf16(double value) : bf16(round_to_odd(value)) {}

f16::f16(float value) : bits(f16_bits(std::bit_cast<uint32_t>(value))) {}
f16::f16(double value) : f16(round_to_odd(value)) {}
f16::operator float() const { return std::bit_cast<float>(f32_bits(bits)); }

}  // namespace mh
