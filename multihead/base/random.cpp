// Streams of random numbers, with a logarithm and a sine of our own: a C library's differ in the last bit.
#include "multihead/base/random.h"

#include <bit>
#include <cmath>

#include "multihead/base/error.h"

namespace mh {

namespace {

constexpr uint32_t low_word(uint64_t x) { return static_cast<uint32_t>(x); }
constexpr uint32_t high_word(uint64_t x) { return static_cast<uint32_t>(x >> 32); }

// log x for normal x > 0: x = 2^e · m with m in [√½, √2), log m = 2 atanh((m - 1) / (m + 1)). The series, cut after the
// 21st power of |s| <= 0.172, is off by less than 2^-58.
double portable_log(double x) {
  constexpr uint64_t kSignificand = (uint64_t{1} << 52) - 1;
  const uint64_t u = std::bit_cast<uint64_t>(x);
  int exponent = static_cast<int>(u >> 52) - 1023;
  double m = std::bit_cast<double>((u & kSignificand) | (uint64_t{1023} << 52));
  if (m > 1.4142135623730951) {
    m *= 0.5;
    ++exponent;
  }
  const double s = (m - 1) / (m + 1);
  const double s2 = s * s;
  double series = 0;
  for (int power = 21; power >= 1; power -= 2) series = series * s2 + 1.0 / power;
  return exponent * 0.6931471805599453 + 2 * s * series;
}

// cos and sin of 2π · turn for turn in [0, 1), by Taylor's series within an eighth of a turn of a quarter's end.
std::array<double, 2> portable_cos_sin(double turn) {
  const double quarters = std::floor(turn * 4 + 0.5);
  const double x = (turn - quarters * 0.25) * 6.283185307179586;  // |x| <= π/4
  const double x2 = x * x;
  double c = 0, s = 0;
  for (int n = 16; n >= 2; n -= 2) c = (c + 1) * (-x2 / (n * (n - 1)));
  for (int n = 17; n >= 3; n -= 2) s = (s + 1) * (-x2 / (n * (n - 1)));
  c += 1;
  s = (s + 1) * x;
  switch (static_cast<int>(quarters) & 3) {
    case 0: return {c, s};
    case 1: return {-s, c};
    case 2: return {-c, -s};
    default: return {s, -c};
  }
}

}  // namespace

std::array<uint32_t, 4> random_bits(uint64_t seed, uint64_t group, uint64_t stream) {
  return philox4x32<10>({low_word(group), high_word(group), low_word(stream), high_word(stream)},
                        {low_word(seed), high_word(seed)});
}

std::array<double, 4> random_uniform(uint64_t seed, uint64_t group, uint64_t stream) {
  const std::array<uint32_t, 4> words = random_bits(seed, group, stream);
  std::array<double, 4> out{};
  for (size_t i = 0; i < 4; ++i) out[i] = words[i] * 0x1p-32;
  return out;
}

std::array<double, 4> random_normal(uint64_t seed, uint64_t group, uint64_t stream) {
  const std::array<uint32_t, 4> words = random_bits(seed, group, stream);
  std::array<double, 4> out{};
  for (size_t i = 0; i < 4; i += 2) {
    const double radius = std::sqrt(-2 * portable_log((words[i] + 0.5) * 0x1p-32));  // (0, 1): the log is finite
    const std::array<double, 2> direction = portable_cos_sin(words[i + 1] * 0x1p-32);
    out[i] = radius * direction[0];
    out[i + 1] = radius * direction[1];
  }
  return out;
}

uint32_t Random::bits() {
  if (words_left_ == 0) {
    words_ = random_bits(seed_, group_++, stream_);
    words_left_ = 4;
  }
  return words_[static_cast<size_t>(4 - words_left_--)];
}

double Random::uniform() { return bits() * 0x1p-32; }

double Random::normal() {
  if (normals_left_ == 0) {
    normals_ = random_normal(seed_, group_++, stream_);
    normals_left_ = 4;
  }
  return normals_[static_cast<size_t>(4 - normals_left_--)];
}

int64_t Random::below(int64_t n) {
  check(n >= 1, "Random::below: n is {}; expected 1 or more", n);
  const uint64_t high = bits();
  const uint64_t wide = (high << 32) | bits();
  __extension__ using Wide = unsigned __int128;
  return static_cast<int64_t>((static_cast<Wide>(wide) * static_cast<uint64_t>(n)) >> 64);
}

}  // namespace mh
