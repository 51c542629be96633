// The AMX rung: tile products against the manual's formula, attention on the software twin, the twin against the hardware.
#include <gtest/gtest.h>

#if defined(__x86_64__)

#include <hwy/base.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "multihead/base/parallel.h"
#include "multihead/check/garbage.h"
#include "multihead/check/verdict.h"
#include "multihead/kernels/cpu/amx_detect.h"
#include "multihead/kernels/cpu/dispatch.h"

// g++ 12 warns of its own intrinsics' undefined vectors.
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx512cd,fma")
#include <immintrin.h>

namespace mh::kernels {
namespace {

inline int64_t round_up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }
#include "multihead/kernels/cpu/tile.inl"
#include "multihead/kernels/cpu/tile_gemm.inl"

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

template <class Tiles>
void multiply_panel(const uint16_t* a, int64_t k, const uint32_t* panel, bool add, float* c) {
  Tiles tiles;
  tile_gemm(tiles, a, 2 * k, panel, k / 32, add, c, 32);
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
  const std::vector<uint16_t> a = random_halves(512, spread, random), b = random_halves(512, spread, random), c = random_halves(256, spread, random);
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

TEST(AmxTiles, PanelProductIsTheMatrixProduct) {
  if (!has_avx512()) GTEST_SKIP() << "the software tiles need AVX-512";
  std::mt19937 random(4);
  constexpr int kDepth = 96, kRows = 32, kColumns = 19;
  const std::vector<uint16_t> a = random_halves(kRows * kDepth, 3, random), w = random_halves(kDepth * kColumns, 3, random);
  alignas(64) static uint32_t panel[kDepth / 32 * 2 * 256];
  alignas(64) static float c[32 * 32];
  pack_tile_panel(w.data(), kColumns, 1, kDepth, kColumns, panel);
  ASSERT_EQ(tile_panel_bytes(kDepth), static_cast<int64_t>(sizeof panel));
  multiply_panel<SoftwareTiles>(a.data(), kDepth, panel, false, c);
  multiply_panel<SoftwareTiles>(a.data(), kDepth, panel, true, c);
  for (int m = 0; m < kRows; ++m) {
    for (int n = 0; n < 32; ++n) {
      double expected = 0, size = 0;
      for (int k = 0; k < kDepth && n < kColumns; ++k) {
        const double x = 2.0 * flushed(widened(a[m * kDepth + k])) * flushed(widened(w[k * kColumns + n]));
        expected += x;
        size += std::fabs(x);
      }
      EXPECT_NEAR(c[m * 32 + n], expected, 1e-5 * size) << "row " << m << ", column " << n;
    }
  }
}

// Takes the twin, or a rung, into use while it lives.
class Using {
 public:
  explicit Using(bool twin) : rung_(rung()) { use_amx_twin(twin); }
  ~Using() {
    use_amx_twin(false);
    use_rung(rung_);
    set_threads(threads_);
  }
  Using(const Using&) = delete;
  Using& operator=(const Using&) = delete;

 private:
  Rung rung_;
  int threads_ = threads();
};

// Sizes past one block of queries, one span of the backward pass, one chunk of keys; both widths with their own code.
std::vector<AttentionCase> tile_cases() {
  std::vector<AttentionCase> cases = {
      {.H = 2, .Tq = 300, .Tk = 700, .Dk = 64, .Dv = 64},
      {.H = 1, .Tq = 150, .Tk = 333, .Dk = 128, .Dv = 128, .masks = kMaskCausal},
      {.H = 4, .Hkv = 2, .Tq = 257, .Tk = 257, .Dk = 64, .Dv = 64, .layout = CaseLayout::bthd, .masks = kMaskCausal},
      {.H = 1, .Tq = 70, .Tk = 4500, .Dk = 64, .Dv = 64, .masks = kMaskLengths},
      {.B = 2, .H = 2, .Tq = 90, .Tk = 1100, .Dk = 40, .Dv = 96, .masks = kMaskKeep | kMaskWindow, .sink = true},
      {.H = 1, .Tq = 200, .Tk = 200, .Dk = 96, .Dv = 256, .masks = kMaskDocuments, .bias = CaseBias::dense, .dropout = 0.25f},
      {.H = 2, .Tq = 130, .Tk = 520, .Dk = 64, .Dv = 64, .bias = CaseBias::alibi, .similarity = CaseSimilarity::cosine, .cap = 10, .d_lse = true},
      {.H = 1, .Tq = 64, .Tk = 640, .Dk = 64, .Dv = 64, .growth = 3000},
      {.H = 1, .Tq = 3, .Tk = 70, .Dk = 512, .Dv = 33, .similarity = CaseSimilarity::euclidean},
      {.B = 3, .H = 2, .Tq = 120, .Tk = 140, .Dk = 64, .Dv = 64, .masks = kMaskCausal, .dropout = 0.1f, .packed = true},
  };
  uint64_t seed = 100;
  for (AttentionCase& c : cases) c.dtype = DType::bf16, c.seed = seed++;
  return cases;
}

TEST(AmxAttention, TwinKeepsTheAccuracyRule) {
  if (!amx_twin()) GTEST_SKIP() << "the twin needs AVX-512";
  const Using twin(true);
  for (const AttentionCase& c : tile_cases()) {
    const JudgedCase judged(c);
    for (const std::string& failure : judged.judge(run_case(judged.in))) ADD_FAILURE() << c.label() << ": " << failure;
  }
}

TEST(AmxAttention, BitsDoNotDependOnThreads) {
  if (!amx_twin()) GTEST_SKIP() << "the twin needs AVX-512";
  const Using twin(true);
  for (const AttentionCase& c : tile_cases()) {
    const CaseInputs in = make_inputs(c);
    set_threads(1);
    const CaseOutputs alone = run_case(in);
    for (const int count : {2, 3, 7}) {
      set_threads(count);
      EXPECT_TRUE(differing(alone, run_case(in)).empty()) << c.label() << " with " << count << " threads";
    }
  }
}

TEST(AmxAttention, GarbageInDroppedPlacesChangesNoBit) {
  if (!amx_twin()) GTEST_SKIP() << "the twin needs AVX-512";
  const Using twin(true);
  int64_t places = 0;
  for (const AttentionCase& c : tile_cases()) {
    const CaseOutputs clean = run_case(make_inputs(c));
    for (uint64_t seed = 0; seed < 3; ++seed) {
      for (const Planted& planted : {plant_everywhere(c, seed), plant_by_pair(c, seed)}) {
        if (planted.places == 0) continue;
        places += planted.places;
        for (const std::string& failure : judge_garbage(planted, clean, run_case(planted.in)))
          ADD_FAILURE() << c.label() << ", garbage " << planted.where << ": " << failure;
      }
    }
  }
  EXPECT_GT(places, 0);
}

TEST(AmxAttention, HardwareHasTheTwinsBits) {
  if (amx_missing()) GTEST_SKIP() << "no hardware to compare with: " << amx_missing();
  for (const AttentionCase& c : tile_cases()) {
    const CaseInputs in = make_inputs(c);
    CaseOutputs hard, soft;
    {
      const Using hardware(false);
      use_rung(Rung::amx);
      hard = run_case(in);
    }
    {
      const Using twin(true);
      soft = run_case(in);
    }
    for (const std::string& name : differing(hard, soft)) ADD_FAILURE() << c.label() << ": " << name << " differs";
  }
}

TEST(AmxAttention, OtherTypesStayWithTheRungBelow) {
  if (!amx_twin()) GTEST_SKIP() << "the twin needs AVX-512";
  AttentionCase c{.H = 2, .Tq = 40, .Tk = 70, .Dk = 32, .Dv = 32, .seed = 9};
  const CaseInputs in = make_inputs(c);
  const Using twin(false);
  use_rung(Rung::avx512);
  const CaseOutputs below = run_case(in);
  use_amx_twin(true);
  EXPECT_TRUE(differing(below, run_case(in)).empty());
}

}  // namespace
}  // namespace mh::kernels

#endif
