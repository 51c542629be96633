// Logits that grow along the keys to ±10⁴ keep the accuracy rule: the running maximum moves in every block.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "multihead/check/problem.h"
#include "multihead/check/verdict.h"
#include "tests/harness/rungs.h"

namespace mh {
namespace {

TEST(AttentionGrowth, KeepsTheAccuracyRule) {
  std::vector<AttentionCase> cases;
  for (const AttentionCase& drawn : attention_cases(harness::cases(400))) {
    AttentionCase c = drawn;
    if (c.Tk < 2 || c.mix != CaseMix::none) continue;
    c.similarity = CaseSimilarity::dot;
    c.cap = 0;
    c.growth = (c.seed % 2 == 0 ? 1.0F : -1.0F) * std::array{10.0F, 100.0F, 1000.0F, 10000.0F}[c.seed % 4];
    cases.push_back(c);
  }
  int failures = 0;
  for (const AttentionCase& c : cases) {
    const JudgedCase judged(c);
    for (const harness::Step& step : harness::steps()) {
      if (!step.rung && c.dtype != DType::bf16) continue;
      const harness::Scope scope(step);
      const auto wrong = judged.judge(run_case(judged.in));
      EXPECT_TRUE(wrong.empty()) << step.name << " " << c.label() << harness::listed(wrong);
      if (!wrong.empty() && ++failures == 20) FAIL() << "20 cases failed; the others were not run";
    }
  }
}

double largest_difference(const Tensor& a, const Tensor& b) {
  const auto x = reference::values<double>(a), y = reference::values<double>(b);
  double most = 0;
  for (size_t n = 0; n < x.size(); ++n) most = std::max(most, std::abs(x[n] - y[n]));
  return most;
}

// f32 holds an lse of 10⁴ to 5 · 10⁻⁴, and weights rebuilt from that alone would err as much. With one key every weight
// is 1, so dv is the sum of d_o; f32 may round that by n · 2⁻²⁴ of the sum of the sizes.
TEST(AttentionGrowth, BackwardFeelsNoRoundingOfALargeLse) {
  for (const int64_t rows : {8, 30}) {
    const Tensor q = randn({1, 1, rows, 32}, 1), k = randn({1, 1, 1, 32}, 2), v = randn({1, 1, 1, 4}, 3);
    const Tensor d_o = full({1, 1, rows, 4}, 0.7);
    const AttentionOptions options{.similarity = DotSimilarity{2000.0F}};
    const double n = static_cast<double>(rows), sum = n * static_cast<double>(0.7F);
    for (const harness::Step& step : harness::steps()) {
      if (!step.rung) continue;
      const harness::Scope scope(step);
      const AttentionResult result = attention(q, k, v, options);
      const Tensor dv = attention_backward({q, k, v, result}, d_o, {}, options).dv;
      for (const double each : reference::values<double>(dv)) EXPECT_NEAR(each, sum, n * 0x1p-24 * sum) << step.name;
    }
  }
}

// Half the keys with the lse of all of them, as where the keys are spread over machines: the gradients are those of
// all.
TEST(AttentionGrowth, BackwardKeepsALargeLseOfMoreKeys) {
  const Tensor q = randn({1, 1, 20, 16}, 1), v = randn({1, 1, 40, 16}, 3), d_o = randn({1, 1, 20, 16}, 4);
  const Tensor k = randn({1, 1, 40, 16}, 2);
  const AttentionOptions options{.similarity = DotSimilarity{40.0F}};
  for (const harness::Step& step : harness::steps()) {
    if (!step.rung) continue;
    const harness::Scope scope(step);
    const AttentionResult all = attention(q, k, v, options);
    const Tensor whole = attention_backward({q, k, v, all}, d_o, {}, options).dv;
    const Tensor half = attention_backward({q, k.slice(2, 0, 20), v.slice(2, 0, 20), all}, d_o, {}, options).dv;
    EXPECT_LE(largest_difference(half, whole.slice(2, 0, 20)), 1e-4) << step.name;
  }
}

}  // namespace
}  // namespace mh
