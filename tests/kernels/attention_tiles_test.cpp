// bf16 attention over tiles, of every kind that this machine can run: the software twin, AMX, pairs in registers.
#include <gtest/gtest.h>

#if defined(__x86_64__)

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "multihead/base/parallel.h"
#include "multihead/check/garbage.h"
#include "multihead/check/verdict.h"
#include "multihead/kernels/cpu/dispatch.h"
#include "multihead/ops/attention/attention.h"
#include "tests/harness/rungs.h"
#include "tests/ops/compare.h"

namespace mh::kernels {
namespace {

std::vector<harness::Step> kinds_of_tiles() {
  std::vector<harness::Step> out;
  for (const harness::Step& step : harness::steps()) {
    if (!step.rung || step.rung == Rung::amx || step.rung == Rung::avx512_bf16) out.push_back(step);
  }
  return out;
}

// Sizes past one block of queries, one span of the backward pass, one chunk of keys; the widths with their own code,
// and ones that fill the last tile to a half or less.
std::vector<AttentionCase> tile_cases() {
  std::vector<AttentionCase> cases = {
      {.H = 2, .Tq = 300, .Tk = 700, .Dk = 64, .Dv = 64},
      {.H = 1, .Tq = 150, .Tk = 333, .Dk = 128, .Dv = 128, .masks = kMaskCausal},
      {.H = 4, .Hkv = 2, .Tq = 257, .Tk = 257, .Dk = 64, .Dv = 64, .layout = CaseLayout::bthd, .masks = kMaskCausal},
      {.H = 1, .Tq = 70, .Tk = 4500, .Dk = 64, .Dv = 64, .masks = kMaskLengths},
      {.B = 2, .H = 2, .Tq = 90, .Tk = 1100, .Dk = 40, .Dv = 96, .masks = kMaskKeep | kMaskWindow, .sink = true},
      {.H = 1,
       .Tq = 200,
       .Tk = 200,
       .Dk = 96,
       .Dv = 256,
       .masks = kMaskDocuments,
       .bias = CaseBias::dense,
       .dropout = 0.25f},
      {.H = 2,
       .Tq = 130,
       .Tk = 520,
       .Dk = 64,
       .Dv = 64,
       .bias = CaseBias::alibi,
       .similarity = CaseSimilarity::cosine,
       .cap = 10,
       .d_lse = true},
      {.H = 1, .Tq = 64, .Tk = 640, .Dk = 64, .Dv = 64, .growth = 3000},
      {.H = 1, .Tq = 3, .Tk = 70, .Dk = 512, .Dv = 33, .similarity = CaseSimilarity::euclidean},
      {.B = 3, .H = 2, .Tq = 120, .Tk = 140, .Dk = 64, .Dv = 64, .masks = kMaskCausal, .dropout = 0.1f, .packed = true},
      {.H = 2, .Tq = 100, .Tk = 190, .Dk = 80, .Dv = 80, .masks = kMaskCausal},
      {.H = 2, .Tq = 33, .Tk = 97, .Dk = 7, .Dv = 17, .masks = kMaskWindow, .similarity = CaseSimilarity::euclidean},
      {.B = 2, .H = 2, .Hkv = 1, .Tq = 77, .Tk = 189, .Dk = 32, .Dv = 32, .bias = CaseBias::dense},
      {.H = 2, .Tq = 150, .Tk = 150, .Dk = 64, .Dv = 64, .masks = kMaskCausal, .bias = CaseBias::half},
      {.H = 2, .Tq = 60, .Tk = 100, .Dk = 64, .Dv = 64, .masks = kMaskWindow | kMaskKeep, .bias = CaseBias::drops},
      {.H = 1, .Tq = 50, .Tk = 90, .Dk = 64, .Dv = 64, .bias = CaseBias::t5, .cap = 2},
      // Up to 32 keys, many heads to a task; keys that are read in place up to the last 32; rows that keep none.
      {.B = 4, .H = 20, .Tq = 32, .Tk = 32, .Dk = 64, .Dv = 64},
      {.B = 3, .H = 30, .Tq = 9, .Tk = 21, .Dk = 32, .Dv = 32, .masks = kMaskCausal | kMaskLengths},
      {.H = 2, .Tq = 170, .Tk = 171, .Dk = 32, .Dv = 32, .masks = kMaskCausal, .sink = true},
      {.H = 2, .Tq = 128, .Tk = 128, .Dk = 96, .Dv = 96},
      {.H = 2, .Tq = 140, .Tk = 40, .Dk = 64, .Dv = 64, .masks = kMaskCausal},
      // Far from the cap: tanh must be as exact as its argument.
      {.H = 1, .Tq = 50, .Tk = 90, .Dk = 64, .Dv = 64, .cap = 1e6f},
  };
  uint64_t seed = 100;
  for (AttentionCase& c : cases) c.dtype = DType::bf16, c.seed = seed++;
  return cases;
}

TEST(TileAttention, KeepsTheAccuracyRule) {
  for (const AttentionCase& c : tile_cases()) {
    if (harness::kLooksForRaces && c.seed % 4 != 0) continue;
    const JudgedCase judged(c);
    for (const harness::Step& kind : kinds_of_tiles()) {
      const harness::Scope scope(kind);
      for (const std::string& failure : judged.judge(run_case(judged.in)))
        ADD_FAILURE() << kind.name << ", " << c.label() << ": " << failure;
    }
  }
}

TEST(TileAttention, BitsDoNotDependOnThreads) {
  for (const AttentionCase& c : tile_cases()) {
    const CaseInputs in = make_inputs(c);
    for (const harness::Step& kind : kinds_of_tiles()) {
      const harness::Scope scope(kind);
      set_threads(1);
      const CaseOutputs alone = run_case(in);
      for (const int count : {2, 3, 7}) {
        set_threads(count);
        EXPECT_TRUE(differing(alone, run_case(in)).empty())
            << kind.name << ", " << c.label() << " with " << count << " threads";
      }
    }
  }
}

TEST(TileAttention, GarbageInDroppedPlacesChangesNoBit) {
  int64_t places = 0;
  for (const AttentionCase& c : tile_cases()) {
    std::vector<Planted> variants;
    for (uint64_t seed = 0; seed < 3; ++seed) {
      for (Planted& planted : std::array{plant_everywhere(c, seed), plant_by_pair(c, seed)}) {
        places += planted.places;
        if (planted.places > 0) variants.push_back(std::move(planted));
      }
    }
    if (variants.empty()) continue;
    const CaseInputs in = make_inputs(c);
    for (const harness::Step& kind : kinds_of_tiles()) {
      const harness::Scope scope(kind);
      const CaseOutputs clean = run_case(in);
      for (const Planted& planted : variants) {
        for (const std::string& failure : judge_garbage(planted, clean, run_case(planted.in)))
          ADD_FAILURE() << kind.name << ", " << c.label() << ", garbage " << planted.where << ": " << failure;
      }
    }
  }
  EXPECT_GT(places, 0);
}

// Where every pair is computed, the gradient of a bias is written without being cleared first; under a mask it is not.
TEST(TileAttention, GradientOfABiasReplacesWhatWasThere) {
  const Tensor q = randn({2, 2, 45, 32}, 1, DType::bf16), k = randn({2, 2, 70, 32}, 2, DType::bf16),
               v = randn({2, 2, 70, 32}, 3, DType::bf16), d_o = randn({2, 2, 45, 32}, 4, DType::bf16);
  for (const harness::Step& kind : kinds_of_tiles()) {
    const harness::Scope scope(kind);
    for (const Mask& mask : {Mask{}, causal(), window(3, 3), lengths(tensor<int32_t>({70, 31}, {2}))}) {
      for (const Shape& shape : {Shape{2, 2, 45, 70}, Shape{1, 2, 45, 70}, Shape{2, 2, 1, 70}, Shape{2, 2, 45, 1}}) {
        const AttentionOptions options{.mask = mask, .bias = {DenseBias{randn(shape, 5)}}};
        const AttentionCall call{q, k, v, attention(q, k, v, options)};
        const AttentionGradients onto_zeros{.dbias = {zeros(shape)}}, onto_nan{.dbias = {full(shape, NAN)}};
        attention_backward_into(onto_zeros, call, {d_o, {}}, options);
        attention_backward_into(onto_nan, call, {d_o, {}}, options);
        EXPECT_TRUE(test::same_bits(onto_zeros.dbias[0], onto_nan.dbias[0])) << kind.name;
      }
    }
  }
}

TEST(TileAttention, HardwareHasTheTwinsBits) {
  const std::vector<harness::Step> kinds = kinds_of_tiles();
  if (std::none_of(kinds.begin(), kinds.end(), [](const harness::Step& kind) { return kind.rung == Rung::amx; }))
    GTEST_SKIP() << "no hardware to compare with, or a build without its rung";
  for (const AttentionCase& c : tile_cases()) {
    const CaseInputs in = make_inputs(c);
    CaseOutputs hard, soft;
    {
      const harness::Scope hardware({"amx", Rung::amx});
      hard = run_case(in);
    }
    {
      const harness::Scope twin({"amx_twin", {}});
      soft = run_case(in);
    }
    for (const std::string& name : differing(hard, soft)) ADD_FAILURE() << c.label() << ": " << name << " differs";
  }
}

TEST(TileAttention, OtherTypesStayWithTheRungBelow) {
  const std::vector<harness::Step> kinds = kinds_of_tiles();
  if (kinds.empty()) GTEST_SKIP() << "every kind of tiles needs AVX-512";
  const AttentionCase c{.H = 2, .Tq = 40, .Tk = 70, .Dk = 32, .Dv = 32, .seed = 9};
  const CaseInputs in = make_inputs(c);
  const harness::Scope scope({"avx512", Rung::avx512});
  const CaseOutputs below = run_case(in);
  for (const harness::Step& kind : kinds) {
    const harness::Scope inner(kind);
    EXPECT_TRUE(differing(below, run_case(in)).empty()) << kind.name;
  }
}

}  // namespace
}  // namespace mh::kernels

#endif
