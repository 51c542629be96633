// The GPU's idea of a pair beside the reference's: the CPU's table of cases, planned and packed as for a kernel.
#include <gtest/gtest.h>

#include <cmath>

#include "multihead/check/cases/cases.h"
#include "multihead/check/problem.h"
#include "multihead/kernels/cuda/pack.h"
#include "multihead/kernels/cuda/pairs.h"
#include "multihead/ops/attention/run.h"

namespace mh::kernels::cuda {
namespace {

double number(const Array& a, int64_t at) {
  if (a.type == Element::bf16) return static_cast<float>(static_cast<const bf16*>(a.data)[at]);
  if (a.type == Element::f16) return static_cast<float>(static_cast<const f16*>(a.data)[at]);
  return static_cast<const float*>(a.data)[at];
}

// The sum of a pair's biases as generic.h adds them.
double bias_of(const Options& options, const Span& span, int b, int h, int i, int j) {
  const double dense = options.bias ? number(options.bias, options.bias.at(b, h, i, j)) : 0;
  return relative_bias(options, h, span.position + i - j) + dense;
}

// Every pair of a case; `decoding`: biases by distance as a decoding call gets them.
void compare(const AttentionCase& c, bool decoding) {
  const CaseInputs in = make_inputs(c);
  const reference::Problem wanted(in.q, in.k, in.v, in.options);
  detail::AttentionPlan plan = detail::plan_attention("attention", {in.q, in.k, in.v, in.options});
  detail::fill_relative(plan, decoding);
  const cuda::Packed packed = pack(detail::forward_args(plan));
  const Call& call = packed.call;
  ASSERT_EQ(call.B, wanted.B) << c.label();
  for (int b = 0; b < call.B; ++b) {
    Span span = call.span;
    if (!packed.spans.empty()) span = packed.spans[b];
    const Interval mask = interval_of(call.options, span);
    ASSERT_EQ(span.q_len, wanted.spans[b].q_len) << c.label();
    for (int h = 0; h < call.H; ++h)
      for (int i = 0; i < span.q_len; ++i)
        for (int j = 0; j < wanted.spans[b].k_len; ++j) {
          const bool kept = wanted.keeps(b, h, i, j);
          ASSERT_EQ(keeps(call.options, mask, b, h, i, j), kept)
              << c.label() << ", pair " << b << ' ' << h << ' ' << i << ' ' << j;
          if (!kept) continue;
          const double bias = wanted.bias(b, h, i, j), got = bias_of(call.options, span, b, h, i, j);
          ASSERT_TRUE(bias == got || std::abs(bias - got) <= 1e-6 * (1 + std::abs(bias)))
              << c.label() << ", pair " << b << ' ' << h << ' ' << i << ' ' << j << ": " << got << ", not " << bias;
          ASSERT_FLOAT_EQ(dropout_factor(call.options, b, h, i, j),
                          static_cast<float>(wanted.dropout_factor(b, h, i, j)))
              << c.label();
        }
  }
}

// Pairs of a case: some are too many for a test of seconds.
int64_t pairs_of(const AttentionCase& c) { return c.B * c.H * c.Tq * c.Tk; }

TEST(CudaPairs, MasksBiasesAndDropoutOfTheTableAreThoseOfTheReference) {
  int masked = 0, biased = 0, documents = 0, dense = 0;
  for (const AttentionCase& c : attention_cases(1500)) {
    if (c.mix != CaseMix::none || pairs_of(c) > 20000) continue;
    compare(c, false);
    if (HasFatalFailure()) return;
    masked += c.masks != 0;
    biased += c.bias != CaseBias::none;
    documents += (c.masks & kMaskDocuments) != 0;
    dense += (c.masks & (kMaskKeep | kMaskDrop)) != 0;
  }
  for (int count : {masked, biased, documents, dense}) EXPECT_GT(count, 20);
}

TEST(CudaPairs, BiasesByDistanceOfOneQueryAreThoseOfTheReference) {
  for (const CaseBias bias : {CaseBias::alibi, CaseBias::t5, CaseBias::t5_one_way})
    for (int Tk : {1, 40, 700})
      compare({.B = 2, .H = 3, .Hkv = 1, .Tq = 1, .Tk = Tk, .Dk = 8, .Dv = 8, .bias = bias, .seed = 5}, true);
}

}  // namespace
}  // namespace mh::kernels::cuda
