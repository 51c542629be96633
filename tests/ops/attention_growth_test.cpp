// Logits that grow along the keys to ±10⁴ keep the accuracy rule: the running maximum moves in every block.
#include <gtest/gtest.h>

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

}  // namespace
}  // namespace mh
