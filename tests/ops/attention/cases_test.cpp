// The table of cases on every rung: accuracy, gradients, empty rows, bits for any number of threads.
#include <gtest/gtest.h>

#include <algorithm>

#include "multihead/check/cases/cases.h"
#include "multihead/check/selftest.h"
#include "multihead/check/verdict.h"
#include "tests/harness/rungs.h"

namespace mh {
namespace {

TEST(AttentionCases, AgreeWithTheReferenceOnEveryRung) {
  const SelftestReport report = selftest({.cases = harness::cases(kFastCases)});
  EXPECT_GE(report.ran, harness::cases(kFastCases));
  EXPECT_GT(report.garbage, harness::cases(kFastCases) / 4);
  EXPECT_EQ(report.failed, 0) << harness::listed(report.failures);
  RecordProperty("combinations", static_cast<int>(report.ran));
}

TEST(AttentionCases, HaveTheSameBitsForAnyNumberOfThreads) {
  for (const AttentionCase& c : attention_cases(harness::cases(300))) {
    const CaseInputs in = make_inputs(c);
    for (const harness::Step& step : harness::steps()) {
      if (!step.rung && c.dtype != DType::bf16) continue;
      const harness::Scope scope(step);
      set_threads(1);
      const CaseOutputs alone = run_case(in);
      for (int count : {2, 3, 7, 16}) {
        set_threads(count);
        const auto wrong = differing(alone, run_case(in));
        EXPECT_TRUE(wrong.empty()) << step.name << " " << count << " threads: " << c.label() << harness::listed(wrong);
      }
    }
  }
}

TEST(AttentionCases, OnlyMixingComposes) {
  for (const AttentionCase& c : attention_cases(harness::cases(1000))) {
    const CaseInputs in = make_inputs(c);
    EXPECT_EQ(explain(in.q, in.k, in.v, in.options).composed, c.mix != CaseMix::none) << c.label();
  }
}

TEST(AttentionCases, ASmallSetBeginsALargeOne) {
  const auto few = attention_cases(100), many = attention_cases(5000);
  for (size_t n = 0; n < few.size(); ++n) EXPECT_EQ(few[n].label(), many[n].label());
}

TEST(AttentionCases, CoverEveryOptionInEveryType) {
  const auto cases = attention_cases(kFastCases);
  for (DType dtype : {DType::f32, DType::bf16, DType::f16}) {
    for (const char* word : {"bthd",
                             "shared",
                             "padded",
                             " keep",
                             " drop",
                             "lengths",
                             "causal",
                             "offset ",
                             "offsets",
                             "window",
                             "prefix",
                             " documents",
                             "query_documents",
                             "bias",
                             "bias(H,1,Tk)",
                             "bias(Tk)",
                             "bias(B,1,Tq,1)",
                             "bias(-inf)",
                             "bias(bf16)",
                             "alibi",
                             "t5",
                             "t5_one_way",
                             "scaled",
                             "cosine",
                             "cosine(H)",
                             "euclidean",
                             "head_mix",
                             "key_mix",
                             "cap=",
                             "dropout=1",
                             "dropout=0.1",
                             "growth=10000",
                             "growth=-10000",
                             "sink",
                             "packed",
                             "d_lse",
                             "zero_vectors",
                             "Tk0 ",
                             "Dk512",
                             "Dv1 ",
                             "H8/1",
                             "Tk1025"}) {
      const bool found = std::any_of(cases.begin(), cases.end(), [&](const AttentionCase& c) {
        return c.dtype == dtype && (c.label() + " ").find(word) != std::string::npos;
      });
      EXPECT_TRUE(found) << name(dtype) << " " << word;
    }
  }
}

}  // namespace
}  // namespace mh
