// Tile products of the AMX rung: instructions and software twin against the manual's formula.
#include <gtest/gtest.h>

#if defined(__x86_64__)

#include <hwy/base.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "multihead/kernels/cpu/dispatch.h"
#include "multihead/kernels/cpu/isa/amx_detect.h"

// g++ 12 warns of its own intrinsics' undefined vectors.
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx512cd,fma")
#include <immintrin.h>

namespace mh::kernels {
namespace {

#include "multihead/kernels/cpu/tile.inl"

// c += a · b on tiles 0, 1, 2.
template <class Tiles>
void multiply_once(float* c, const uint16_t* a, const uint16_t* b) {
  Tiles tiles;
  tiles.template load<0>(c);
  tiles.template load<1>(a);
  tiles.template stream<2>(b);
  tiles.template dot<0, 1, 2>();
  tiles.template store<0>(c);
}

}  // namespace
}  // namespace mh::kernels
#pragma GCC pop_options

namespace mh::kernels {
namespace {

float widened(uint16_t bits) {
  const uint32_t word = static_cast<uint32_t>(bits) << 16;
  float x;
  memcpy(&x, &word, 4);
  return x;
}

float flushed(float x) { return std::fabs(x) < std::numeric_limits<float>::min() ? std::copysign(0.0f, x) : x; }

// TDPBF16PS as the manual writes it.
void dot_by_the_manual(float* c, const uint16_t* a, const uint16_t* b) {
  for (int m = 0; m < 16; ++m) {
    for (int n = 0; n < 16; ++n) {
      float sum[2] = {0, 0};
      for (int k = 0; k < 16; ++k) {
        for (int part = 0; part < 2; ++part) {
          const float x = flushed(widened(a[m * 32 + 2 * k + part])), y = flushed(widened(b[k * 32 + 2 * n + part]));
          sum[part] = flushed(std::fma(x, y, sum[part]));
        }
      }
      float& to = c[m * 16 + n];
      to = flushed(flushed(to) + flushed(sum[0] + sum[1]));
    }
  }
}

// bf16 of any exponent within `spread` of 1, some denormal, some zero.
std::vector<uint16_t> random_halves(int count, int spread, std::mt19937& random) {
  std::vector<uint16_t> halves(static_cast<size_t>(count));
  for (uint16_t& half : halves) {
    const int exponent = 127 + static_cast<int>(random() % static_cast<unsigned>(2 * spread + 1)) - spread;
    half = static_cast<uint16_t>((random() & 0x807f) | static_cast<unsigned>(std::clamp(exponent, 0, 254)) << 7);
    if (random() % 16 == 0) half &= 0x807f;
    if (random() % 16 == 0) half &= 0x8000;
  }
  return halves;
}

struct alignas(64) TileSet {
  uint16_t a[512], b[512];
  float c[256];
};

TileSet random_tiles(int spread, std::mt19937& random) {
  TileSet set;
  const std::vector<uint16_t> a = random_halves(512, spread, random), b = random_halves(512, spread, random),
                              c = random_halves(256, spread, random);
  std::copy(a.begin(), a.end(), set.a);
  std::copy(b.begin(), b.end(), set.b);
  std::transform(c.begin(), c.end(), set.c, widened);
  return set;
}

bool has_avx512() { return amx_twin() != nullptr; }

TEST(AmxTiles, SoftwareProductIsTheManualsFormula) {
  if (!has_avx512()) GTEST_SKIP() << "the software tiles need AVX-512";
  std::mt19937 random(1);
  for (const int spread : {0, 3, 20, 64, 126}) {
    for (int round = 0; round < 20; ++round) {
      TileSet set = random_tiles(spread, random);
      float expected[256];
      memcpy(expected, set.c, sizeof expected);
      dot_by_the_manual(expected, set.a, set.b);
      multiply_once<SoftwareTiles>(set.c, set.a, set.b);
      EXPECT_EQ(memcmp(set.c, expected, sizeof expected), 0) << "exponents spread by " << spread;
    }
  }
}

TEST(AmxTiles, SoftwareProductLeavesTheCallersRoundingAlone) {
  if (!has_avx512()) GTEST_SKIP() << "the software tiles need AVX-512";
  std::mt19937 random(2);
  TileSet set = random_tiles(3, random);
  multiply_once<SoftwareTiles>(set.c, set.a, set.b);
  volatile float tiny = std::numeric_limits<float>::min();
  EXPECT_GT(tiny / 2, 0.0f);
}

TEST(AmxTiles, HardwareProductHasTheTwinsBits) {
  if (amx_missing()) GTEST_SKIP() << "no hardware to compare with: " << amx_missing();
  std::mt19937 random(3);
  for (const int spread : {0, 3, 20, 64, 126}) {
    for (int round = 0; round < 200; ++round) {
      TileSet soft = random_tiles(spread, random), hard = soft;
      multiply_once<SoftwareTiles>(soft.c, soft.a, soft.b);
      multiply_once<HardwareTiles>(hard.c, hard.a, hard.b);
      EXPECT_EQ(memcmp(soft.c, hard.c, sizeof soft.c), 0) << "exponents spread by " << spread;
    }
  }
}

}  // namespace
}  // namespace mh::kernels

#endif
