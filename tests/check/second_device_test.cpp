// The table of op cases on a second device, whose memory nobody but its kernels may touch: the bits of the CPU's
// results.
#include <gtest/gtest.h>

#include "multihead/check/cases/cases.h"
#include "multihead/check/op_case.h"
#include "multihead/ops/elementwise.h"
#include "multihead/ops/machine.h"
#include "multihead/ops/rows/embedding.h"
#include "tests/harness/host2.h"
#include "tests/harness/rungs.h"

namespace mh {
namespace {

using harness::kHost2;

TEST(SecondDevice, RunsEveryCaseOfEveryOpWithTheBitsOfTheCpu) {
  harness::bring_host2();
  for (std::vector<OpCase>& family : op_families()) {
    for (OpCase& each : family) each.types.resize(1);
    for (const JudgedOp& op : judged_ops(family)) {
      SCOPED_TRACE(op.label);
      EXPECT_EQ(differing(op.run(), op.run_on(kHost2)), std::vector<std::string>{});
    }
  }
}

// Everything of a call that holds elements for its device; lists of one number per sequence stay where they are.
CaseInputs moved(const CaseInputs& in) {
  CaseInputs out = in;
  for (Tensor* t : {&out.q, &out.k, &out.v, &out.d_o, &out.d_lse, &out.options.sink, &out.options.mask.key_documents,
                    &out.options.mask.query_documents})
    *t = t->to(kHost2);
  for (Mask::Dense& dense : out.options.mask.dense) dense.where = dense.where.to(kHost2);
  for (Bias& bias : out.options.bias) {
    if (auto* dense = std::get_if<DenseBias>(&bias)) dense->values = dense->values.to(kHost2);
    if (auto* alibi = std::get_if<AlibiBias>(&bias)) alibi->slopes = alibi->slopes.to(kHost2);
    if (auto* t5 = std::get_if<T5Bias>(&bias)) t5->table = t5->table.to(kHost2);
  }
  if (auto* cosine = std::get_if<CosineSimilarity>(&out.options.similarity)) cosine->taus = cosine->taus.to(kHost2);
  if (auto* heads = std::get_if<HeadMix>(&out.options.score_mix)) heads->matrix = heads->matrix.to(kHost2);
  if (auto* keys = std::get_if<KeyMix>(&out.options.score_mix)) keys->matrix = keys->matrix.to(kHost2);
  return out;
}

// Forward, backward, weights and statistics of a call, on the CPU.
std::vector<Tensor> results_of(const CaseInputs& in) {
  const AttentionResult result = attention(in.q, in.k, in.v, in.options);
  const AttentionGradients d = attention_backward({in.q, in.k, in.v, result}, in.d_o, in.d_lse, in.options);
  const AttentionStatistics s = attention_statistics(in.q, in.k, result.lse, in.options, 2);
  std::vector<Tensor> out{result.o, result.lse, d.dq,       d.dk,          d.dv,       d.dsink,   d.dtau,
                          d.dmix,   s.entropy,  s.top_keys, s.top_weights, s.received, s.distance};
  out.insert(out.end(), d.dbias.begin(), d.dbias.end());
  out.push_back(attention_weights(in.q, in.k, result.lse, in.options));
  for (Tensor& each : out) each = each.to(Device{});
  return out;
}

bool same_bits_of(const Tensor& a, const Tensor& b) {
  if (!a || !b) return !a && !b;
  return OpOutputs{a, {}}.y.shape() == b.shape() && differing(OpOutputs{a, {}}, OpOutputs{b, {}}).empty();
}

TEST(SecondDevice, RunsTheCasesOfAttentionWithTheBitsOfTheCpu) {
  harness::bring_host2();
  for (const AttentionCase& c : attention_cases(harness::cases(160))) {
    SCOPED_TRACE(c.label());
    const CaseInputs in = make_inputs(c);
    const std::vector<Tensor> here = results_of(in), there = results_of(moved(in));
    ASSERT_EQ(here.size(), there.size());
    for (size_t n = 0; n < here.size(); ++n) EXPECT_TRUE(same_bits_of(here[n], there[n])) << "result " << n;
  }
}

TEST(SecondDevice, TensorsOfTwoDevicesAreRefused) {
  harness::bring_host2();
  const Tensor a = randn({2, 3}, 1), b = a.to(kHost2);
  EXPECT_THROW(add(a, b), Error);
  EXPECT_THROW(attention(a.reshape({1, 1, 2, 3}), a.reshape({1, 1, 2, 3}), b.reshape({1, 1, 2, 3})), Error);
}

TEST(SecondDevice, NumbersOnItAreCheckedWhereThatIsAskedFor) {
  harness::bring_host2();
  const Tensor table = randn({3, 2}, 1).to(kHost2), ids = tensor<int32_t>({0, 3}, {2});
  EXPECT_THROW(embedding(table, ids), Error) << "those of the CPU always are";
  check_contents_everywhere(true);
  EXPECT_THROW(embedding(table, ids.to(kHost2)), Error);
  check_contents_everywhere(false);
}

TEST(SecondDeviceDeathTest, MemoryTouchedFromOutsideEndsTheProcess) {
  harness::bring_host2();
  const Tensor x = zeros({4}, DType::f32, kHost2);
  EXPECT_DEATH(static_cast<void>(*static_cast<volatile float*>(x.view().data)), "");
}

}  // namespace
}  // namespace mh
