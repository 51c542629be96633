// Properties that hold for any shapes, strides and masks.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>

#include "multihead/check/problem.h"
#include "multihead/check/reference.h"
#include "multihead/check/verdict.h"

namespace mh {
namespace {

using reference::values;

// Any case of moderate size, from rapidcheck's own choices: what fails is shrunk to small sizes and few options.
rc::Gen<AttentionCase> any_case(DType dtype) {
  return rc::gen::exec([dtype] {
    const auto size = [](int64_t low, int64_t high) { return *rc::gen::inRange<int64_t>(low, high + 1); };
    AttentionCase c{.dtype = dtype};
    c.B = size(1, 3);
    c.Hkv = size(1, 3);
    c.H = c.Hkv * size(1, 4);
    c.Tq = size(1, 40);
    c.Tk = size(1, 70);
    c.Dk = size(1, 80);
    c.Dv = size(1, 80);
    c.layout = static_cast<CaseLayout>(size(0, 3));
    c.masks = static_cast<uint16_t>(size(0, 1023));
    if (c.masks & kMaskDocuments) c.masks &= ~kMaskQueryDocuments;
    if (c.masks & kMaskOffset) c.masks &= ~kMaskOffsets;
    c.bias = static_cast<CaseBias>(size(0, 11));
    c.similarity = static_cast<CaseSimilarity>(size(0, 4));
    c.cap = static_cast<float>(size(0, 3)) * 4;
    c.sink = size(0, 1) == 1;
    c.packed = size(0, 3) == 3;
    c.d_lse = size(0, 1) == 1;
    c.seed = static_cast<uint64_t>(size(0, 1'000'000));
    return c;
  });
}

void expect_agreement(DType dtype) {
  const AttentionCase c = *any_case(dtype);
  const JudgedCase judged(c);
  const auto wrong = judged.judge(run_case(judged.in));
  RC_LOG() << c.label() << "\n";
  for (const std::string& each : wrong) RC_LOG() << each << "\n";
  RC_ASSERT(wrong.empty());
}

RC_GTEST_PROP(AttentionProperty, AgreesWithTheReferenceInF32, ()) { expect_agreement(DType::f32); }
RC_GTEST_PROP(AttentionProperty, AgreesWithTheReferenceInBf16, ()) { expect_agreement(DType::bf16); }
RC_GTEST_PROP(AttentionProperty, AgreesWithTheReferenceInF16, ()) { expect_agreement(DType::f16); }

RC_GTEST_PROP(AttentionProperty, StridesChangeNoBit, ()) {
  AttentionCase c = *any_case(DType::f32);
  c.layout = CaseLayout::padded;
  const CaseInputs in = make_inputs(c);
  CaseInputs dense = in;
  for (Tensor* each : {&dense.q, &dense.k, &dense.v, &dense.d_o}) *each = each->contiguous();
  RC_ASSERT(differing(run_case(in), run_case(dense)).empty());
}

RC_GTEST_PROP(AttentionProperty, WeightsAreThoseOfTheReference, ()) {
  AttentionCase c = *any_case(DType::f32);
  const CaseInputs in = make_inputs(c);
  const AttentionResult result = attention(in.q, in.k, in.v, in.options);
  const Tensor got = attention_weights(in.q, in.k, result.lse, in.options);
  const Tensor wanted = reference::attention_weights(in.q, in.k, in.options);
  RC_ASSERT(got.shape() == wanted.shape());
  const auto x = values<double>(got), y = values<double>(wanted);
  RC_LOG() << c.label() << "\n";
  for (size_t n = 0; n < x.size(); ++n) RC_ASSERT(std::abs(x[n] - y[n]) <= 1e-4);
}

RC_GTEST_PROP(AttentionProperty, StatisticsAreThoseOfTheReference, ()) {
  AttentionCase c = *any_case(DType::f32);
  const CaseInputs in = make_inputs(c);
  const AttentionResult result = attention(in.q, in.k, in.v, in.options);
  const int top = 3;
  const AttentionStatistics got = attention_statistics(in.q, in.k, result.lse, in.options, top);
  const AttentionStatistics wanted = reference::attention_statistics(in.q, in.k, in.options, top);
  const auto near = [&](const Tensor& a, const Tensor& b, double tolerance) {
    RC_ASSERT(a.shape() == b.shape());
    const auto x = values<double>(a), y = values<double>(b);
    for (size_t n = 0; n < x.size(); ++n) RC_ASSERT(std::abs(x[n] - y[n]) <= tolerance * (1 + std::abs(y[n])));
  };
  RC_LOG() << c.label() << "\n";
  near(got.entropy, wanted.entropy, 1e-3);
  near(got.top_weights, wanted.top_weights, 1e-4);
  near(got.received, wanted.received, 1e-3);
  near(got.distance, wanted.distance, 1e-3);
}

RC_GTEST_PROP(AttentionProperty, MergeOfTwoPartsIsTheWhole, ()) {
  AttentionCase c = *any_case(DType::f32);
  c.masks = 0;
  c.bias = CaseBias::none;
  c.packed = c.sink = false;
  const CaseInputs in = make_inputs(c);
  const int64_t cut = *rc::gen::inRange<int64_t>(0, c.Tk + 1);
  const AttentionResult joined =
      merge({attention(in.q, in.k.slice(2, 0, cut), in.v.slice(2, 0, cut), in.options),
             attention(in.q, in.k.slice(2, cut, c.Tk), in.v.slice(2, cut, c.Tk), in.options)});
  const AttentionResult whole = reference::attention(in.q, in.k, in.v, in.options);
  RC_LOG() << c.label() << " cut at " << cut << "\n";
  const auto near = [](const Tensor& a, const Tensor& b) {
    const auto x = values<double>(a), y = values<double>(b);
    for (size_t n = 0; n < x.size(); ++n) RC_ASSERT(std::abs(x[n] - y[n]) <= 2e-5 * (1 + std::abs(y[n])));
  };
  near(joined.o, whole.o);
  near(joined.lse, whole.lse);
}

}  // namespace
}  // namespace mh
