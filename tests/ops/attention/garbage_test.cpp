// NaN, infinities and huge numbers in dropped places change no bit, on any rung, forward or backward.
#include <gtest/gtest.h>

#include "multihead/check/garbage.h"
#include "tests/harness/rungs.h"

namespace mh {
namespace {

// Of the table, the cases that drop something.
std::vector<AttentionCase> masked_cases(int64_t count) {
  std::vector<AttentionCase> out;
  for (const AttentionCase& c : attention_cases(count * 2)) {
    if (c.masks != 0 || c.bias == CaseBias::drops) out.push_back(c);
  }
  return out;
}

class Garbage : public testing::TestWithParam<bool> {};

TEST_P(Garbage, InDroppedPlacesChangesNoBit) {
  const bool everywhere = GetParam();
  int64_t planted_count = 0, failures = 0;
  const auto cases = masked_cases(harness::cases(700));
  for (const harness::Step& step : harness::steps()) {
    const harness::Scope scope(step);
    set_threads(1);
    for (const AttentionCase& c : cases) {
      if (!step.rung && c.dtype != DType::bf16) continue;
      const Planted planted = everywhere ? plant_everywhere(c, c.seed + 1) : plant_by_pair(c, c.seed + 1);
      if (planted.places == 0) continue;
      ++planted_count;
      const auto wrong = judge_garbage(planted, run_case(make_inputs(c)), run_case(planted.in));
      EXPECT_TRUE(wrong.empty()) << step.name << " " << c.label() << harness::listed(wrong);
      if (!wrong.empty() && ++failures == 20) FAIL() << "20 cases failed; the others were not run";
    }
  }
  EXPECT_GE(planted_count, harness::cases(60) * static_cast<int64_t>(harness::steps().size()));
  RecordProperty("planted", static_cast<int>(planted_count));
}

INSTANTIATE_TEST_SUITE_P(Attention, Garbage, testing::Bool(),
                         [](const auto& info) { return info.param ? "Everywhere" : "ByPair"; });

TEST(Garbage, OnTheDiagonalOfACausalMaskReachesOnlyLaterRows) {
  for (const harness::Step& step : harness::steps()) {
    const harness::Scope scope(step);
    for (DType dtype : {DType::f32, DType::bf16, DType::f16}) {
      const Tensor q = randn({1, 1, 70, 32}, 1, dtype), k = randn({1, 1, 70, 32}, 2, dtype),
                   v = randn({1, 1, 70, 32}, 3, dtype);
      const AttentionOptions options{.mask = causal()};
      const AttentionResult clean = attention(q, k, v, options);
      const Tensor row = v.select(0, 0).select(0, 0).select(0, 40);
      row.copy_from(full({32}, std::numeric_limits<double>::quiet_NaN(), dtype));
      const AttentionResult dirty = attention(q, k, v, options);
      EXPECT_TRUE(same_bits(clean.o.slice(2, 0, 40), dirty.o.slice(2, 0, 40))) << step.name << " " << name(dtype);
      EXPECT_TRUE(same_bits(clean.lse, dirty.lse)) << step.name << " " << name(dtype);
      for (int64_t i = 40; i < 70; ++i) EXPECT_TRUE(std::isnan(dirty.o.item({0, 0, i, 0}))) << step.name << " " << i;
    }
  }
}

TEST(Garbage, NanInAKeptPlacePropagates) {
  for (const harness::Step& step : harness::steps()) {
    const harness::Scope scope(step);
    const Tensor q = randn({1, 2, 5, 8}, 1), k = randn({1, 2, 9, 8}, 2), v = randn({1, 2, 9, 8}, 3);
    Tensor bias = zeros({5, 9});
    bias.data<float>()[2 * 9 + 4] = std::numeric_limits<float>::infinity();
    const AttentionResult result = attention(q, k, v, {.bias = {DenseBias{bias}}});
    for (int64_t i = 0; i < 5; ++i)
      EXPECT_EQ(std::isfinite(result.o.item({0, 1, i, 0})), i != 2) << step.name << " " << i;
  }
}

}  // namespace
}  // namespace mh
