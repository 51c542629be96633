// Attention on the tape: the gradients of attention_backward, for the traced inputs alone.
#include "multihead/ops/attention/record.h"

#include <gtest/gtest.h>

#include "multihead/ops/shape.h"
#include "tests/ops/compare.h"

namespace mh {
namespace {

using test::same_bits;

TEST(AttentionRecord, GradientsAreThoseOfAttentionBackward) {
  const Tensor q = parameter(randn({2, 4, 9, 16}, 1)), k = parameter(randn({2, 2, 11, 16}, 2)),
               v = parameter(randn({2, 2, 11, 24}, 3)), slopes = parameter(randn({4}, 4)),
               sink = parameter(randn({4}, 5)), taus = parameter(full({4}, 5));
  const AttentionOptions options{.mask = causal(),
                                 .bias = {AlibiBias{slopes}},
                                 .similarity = CosineSimilarity{.taus = taus},
                                 .sink = sink,
                                 .dropout = {0.2F, 7}};
  const Tensor d_o = randn({2, 4, 9, 24}, 6), d_lse = randn({2, 4, 9}, 7);
  Tape tape;
  const AttentionResult result = attention(q, k, v, options);
  Gradients sums;
  tape.backward({result.o, result.lse}, {d_o, d_lse}, sums);
  const AttentionGradients direct = attention_backward({q, k, v, result}, d_o, d_lse, options);
  EXPECT_TRUE(same_bits(sums.of(q), direct.dq));
  EXPECT_TRUE(same_bits(sums.of(k), direct.dk));
  EXPECT_TRUE(same_bits(sums.of(v), direct.dv));
  EXPECT_TRUE(same_bits(sums.of(slopes), direct.dbias[0]));
  EXPECT_TRUE(same_bits(sums.of(sink), direct.dsink));
  EXPECT_TRUE(same_bits(sums.of(taus), direct.dtau));
}

TEST(AttentionRecord, PartsOfOneMatrixGetTheGradientsOfSeparateOnes) {
  // q, k and v as slices of one projection; k and v alone; all apart.
  const Tensor cu = tensor<int32_t>({0, 5, 12}, {3});
  const Tensor rows = randn({12, 3 * 24}, 1), d_o = randn({12, 3, 8}, 2);
  const AttentionOptions options{.mask = causal(), .packed = Packed{cu, cu}};
  const auto heads = [](const Tensor& part) { return reshape(part, {12, 3, 8}); };
  const Tensor all = parameter(rows);
  Gradients joined;
  {
    Tape tape;
    const std::vector<Tensor> parts = split(all, 1, {24, 24, 24});
    tape.backward({attention(heads(parts[0]), heads(parts[1]), heads(parts[2]), options).o}, {d_o}, joined);
  }
  Gradients apart;
  std::vector<Tensor> each;
  for (int64_t n = 0; n < 3; ++n) each.push_back(parameter(rows.slice(1, 24 * n, 24 * n + 24).clone()));
  {
    Tape tape;
    tape.backward({attention(heads(each[0]), heads(each[1]), heads(each[2]), options).o}, {d_o}, apart);
  }
  for (int64_t n = 0; n < 3; ++n)
    EXPECT_TRUE(
        same_bits(joined.of(all).slice(1, 24 * n, 24 * n + 24).clone(), apart.of(each[static_cast<size_t>(n)])));

  const Tensor pair = parameter(rows.slice(1, 24, 72).clone());
  Gradients two;
  {
    Tape tape;
    const std::vector<Tensor> parts = split(pair, 1, {24, 24});
    tape.backward({attention(heads(each[0]), heads(parts[0]), heads(parts[1]), options).o}, {d_o}, two);
  }
  EXPECT_TRUE(same_bits(two.of(each[0]), apart.of(each[0])));
  EXPECT_TRUE(same_bits(two.of(pair).slice(1, 0, 24).clone(), apart.of(each[1])));
  EXPECT_TRUE(same_bits(two.of(pair).slice(1, 24, 48).clone(), apart.of(each[2])));
}

TEST(AttentionRecord, OnlyTheLseMayBeUsed) {
  const Tensor q = parameter(randn({1, 1, 3, 8}, 1)), k = randn({1, 1, 4, 8}, 2), v = randn({1, 1, 4, 8}, 3);
  Tape tape;
  const AttentionResult result = attention(q, k, v);
  Gradients sums;
  tape.backward({result.lse}, {full({1, 1, 3}, 1)}, sums);
  EXPECT_EQ(sums.size(), 1u);
  EXPECT_NE(sums.of(q).item({0, 0, 0, 0}), 0);
}

TEST(AttentionRecord, NothingIsRecordedForPlainTensors) {
  Tape tape;
  const Tensor q = randn({1, 1, 3, 8}, 1);
  EXPECT_EQ(attention(q, q, q).o.trace(), 0u);
  EXPECT_EQ(tape.size(), 0u);
}

}  // namespace
}  // namespace mh
