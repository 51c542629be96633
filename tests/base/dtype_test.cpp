// The 16-bit floats against what their definition says, value by value.
#include "multihead/base/dtype.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace mh {
namespace {

struct Format {
  int exponent_bits, significand_bits;
};
constexpr Format kBf16{8, 7}, kF16{5, 10};

// The value of a bit pattern, from the definition of the format.
double value_of(uint16_t bits, Format format) {
  const int exponent = (bits >> format.significand_bits) & ((1 << format.exponent_bits) - 1);
  const int significand = bits & ((1 << format.significand_bits) - 1);
  const int bias = (1 << (format.exponent_bits - 1)) - 1;
  const double sign = (bits & 0x8000) != 0 ? -1 : 1;
  if (exponent == (1 << format.exponent_bits) - 1) {
    return significand == 0 ? sign * INFINITY : std::numeric_limits<double>::quiet_NaN();
  }
  if (exponent == 0) return sign * std::ldexp(significand, 1 - bias - format.significand_bits);
  return sign * std::ldexp(significand + (1 << format.significand_bits), exponent - bias - format.significand_bits);
}

template <class T>
void expect_every_value_survives(Format format) {
  for (uint32_t u = 0; u < 65536; ++u) {
    T x;
    x.bits = static_cast<uint16_t>(u);
    const double wanted = value_of(x.bits, format);
    const float value = static_cast<float>(x);
    if (std::isnan(wanted)) {
      ASSERT_TRUE(std::isnan(value)) << u;
      ASSERT_TRUE(std::isnan(static_cast<float>(T(value)))) << u;
      ASSERT_EQ(T(value).bits & 0x8000, x.bits & 0x8000) << u;
      continue;
    }
    ASSERT_EQ(static_cast<double>(value), wanted) << u;
    ASSERT_EQ(std::signbit(value), std::signbit(wanted)) << u;
    ASSERT_EQ(T(value).bits, x.bits) << u;
    ASSERT_EQ(T(static_cast<double>(value)).bits, x.bits) << u;
  }
}

// Between each two neighbours: the middle goes to the even one, a hair to either side to the nearer one.
template <class T>
void expect_rounding_to_nearest_even(Format format) {
  const uint32_t infinity = ((1u << format.exponent_bits) - 1) << format.significand_bits;
  for (uint32_t u = 0; u + 1 <= infinity; ++u) {
    const double low = value_of(static_cast<uint16_t>(u), format);
    double high = value_of(static_cast<uint16_t>(u + 1), format);
    if (u + 1 == infinity) high = low + (low - value_of(static_cast<uint16_t>(u - 1), format));
    const double middle = (low + high) / 2;
    const uint32_t even = u % 2 == 0 ? u : u + 1;
    for (const double sign : {1.0, -1.0}) {
      const uint32_t sign_bit = sign < 0 ? 0x8000 : 0;
      ASSERT_EQ(T(static_cast<float>(sign * middle)).bits, even | sign_bit) << u;
      ASSERT_EQ(T(sign * middle).bits, even | sign_bit) << u;
      // As f32 where it has bits below the middle; as f64 always: one rounding, not two.
      const float above = std::nextafter(static_cast<float>(middle), INFINITY);
      const float below = std::nextafter(static_cast<float>(middle), -INFINITY);
      if (below > low && above < high) {
        ASSERT_EQ(T(static_cast<float>(sign * above)).bits, (u + 1) | sign_bit) << u;
        ASSERT_EQ(T(static_cast<float>(sign * below)).bits, u | sign_bit) << u;
      }
      ASSERT_EQ(T(sign * std::nextafter(middle, INFINITY)).bits, (u + 1) | sign_bit) << u;
      ASSERT_EQ(T(sign * std::nextafter(middle, -INFINITY)).bits, u | sign_bit) << u;
    }
  }
}

TEST(DType, EveryBf16SurvivesF32) { expect_every_value_survives<bf16>(kBf16); }
TEST(DType, EveryF16SurvivesF32) { expect_every_value_survives<f16>(kF16); }
TEST(DType, Bf16RoundsToNearestEven) { expect_rounding_to_nearest_even<bf16>(kBf16); }
TEST(DType, F16RoundsToNearestEven) { expect_rounding_to_nearest_even<f16>(kF16); }

TEST(DType, OverflowGivesInfinity) {
  EXPECT_EQ(f16(65504.0f).bits, 0x7bff);
  EXPECT_EQ(f16(65519.99f).bits, 0x7bff);
  EXPECT_EQ(f16(65520.0f).bits, 0x7c00);
  EXPECT_EQ(f16(-1e30f).bits, 0xfc00);
  EXPECT_EQ(bf16(std::numeric_limits<float>::max()).bits, 0x7f80);
  EXPECT_EQ(bf16(-1e300).bits, 0xff80);
  EXPECT_EQ(f16(INFINITY).bits, 0x7c00);
}

TEST(DType, TinyValuesBecomeSignedZero) {
  EXPECT_EQ(f16(1e-30f).bits, 0);
  EXPECT_EQ(f16(-1e-30f).bits, 0x8000);
  EXPECT_EQ(f16(0x1p-25f).bits, 0);  // a tie: to even
  EXPECT_EQ(f16(std::nextafter(0x1p-25f, 1.0f)).bits, 1);
  EXPECT_EQ(f16(std::numeric_limits<float>::denorm_min()).bits, 0);
  EXPECT_EQ(bf16(1e-300).bits, 0);
  EXPECT_EQ(bf16(-1e-300).bits, 0x8000);
}

TEST(DType, NanPayloadOfLowBitsStaysNan) {
  const float low_payload = std::bit_cast<float>(0x7f800001u);
  EXPECT_TRUE(std::isnan(static_cast<float>(bf16(low_payload))));
  EXPECT_TRUE(std::isnan(static_cast<float>(f16(low_payload))));
}

TEST(DType, VisitsTheTypeBehindTheName) {
  for (const DType t : {DType::f32, DType::bf16, DType::f16, DType::f64, DType::i8, DType::u8, DType::i32, DType::i64,
                        DType::boolean}) {
    EXPECT_EQ(visit_any(t, []<class T>() { return static_cast<int64_t>(sizeof(T)); }), size_of(t));
    EXPECT_EQ(visit_any(t, []<class T>() { return dtype_of<T>(); }), t);
  }
  EXPECT_EQ(visit_float("f", DType::bf16, []<class T>() { return dtype_of<T>(); }), DType::bf16);
}

TEST(DType, RefusalNamesTheOpAndTheType) {
  try {
    visit_float("softmax", DType::i32, []<class T>() {});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::unsupported);
    EXPECT_STREQ(error.what(), "softmax: elements of type i32 are not supported; expected f32, bf16 or f16");
  }
}

}  // namespace
}  // namespace mh
