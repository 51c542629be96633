// What explain says, and that it is so.
#include <gtest/gtest.h>

#include "multihead/base/scratch.h"
#include "multihead/ops/attention/attention.h"
#include "multihead/ops/attention/kv_cache.h"
#include "multihead/ops/machine.h"
#include "tests/ops/compare.h"

namespace mh {
namespace {

using test::contains;

const Tensor kQ = randn({2, 4, 64, 16}, 1), kK = randn({2, 2, 64, 16}, 2), kV = randn({2, 2, 64, 8}, 3);

TEST(Explain, OnlyScoreMixingIsComposed) {
  const std::vector<AttentionOptions> fused{
      {},
      {.mask = causal() & window(4, 4)},
      {.mask = keep(zeros({64, 64}, DType::u8))},
      {.mask = documents(zeros({2, 64}, DType::i32)) & lengths(tensor<int32_t>({3, 64}, {2})) & prefix(5)},
      {.bias = {DenseBias{zeros({64, 64})}, AlibiBias{zeros({4})}}},
      {.bias = {T5Bias{zeros({32, 4})}}},
      {.similarity = CosineSimilarity{2}, .cap = 3},
      {.similarity = EuclideanSimilarity{}, .sink = zeros({4})},
      {.dropout = {0.5f, 1}},
  };
  for (const AttentionOptions& options : fused) {
    for (const DType type : {DType::f32, DType::bf16, DType::f16}) {
      for (const int64_t queries : {1, 64}) {
        const Explanation said =
            explain(kQ.slice(2, 0, queries).to(type), kK.to(type), kV.to(type),
                    queries == 64 ? options : AttentionOptions{.cap = options.cap, .dropout = options.dropout});
        EXPECT_FALSE(said.composed) << said.text();
        EXPECT_NE(said.kernel, "composed");
      }
    }
  }
  const Explanation mixed = explain(kQ, kK, kV, {.score_mix = HeadMix{zeros({4, 4})}});
  EXPECT_TRUE(mixed.composed);
  EXPECT_EQ(mixed.kernel, "composed");
  EXPECT_TRUE(contains(mixed.why, "score mixing"));
}

TEST(Explain, FewRowsDecode) {
  EXPECT_EQ(explain(kQ.slice(2, 0, 1), kK, kV).kernel, "attention_decode");
  EXPECT_EQ(explain(kQ.slice(2, 0, 8), kK, kV).kernel, "attention_decode");
  EXPECT_EQ(explain(kQ.slice(2, 0, 9), kK, kV).kernel, "attention_forward");
  const Explanation dropout = explain(kQ.slice(2, 0, 1), kK, kV, {.dropout = {0.5f, 1}});
  EXPECT_EQ(dropout.kernel, "attention_forward");
  EXPECT_TRUE(contains(dropout.why, "attention_decode"));
  KVCache cache(
      {.batch = 2, .key_heads = 2, .key_width = 16, .value_width = 8, .capacity = 128, .dtype = DType::i8, .page = 16});
  cache.append(kK, kV);
  EXPECT_EQ(explain(kQ.slice(2, 0, 1), cache).kernel, "attention_decode");
}

TEST(Explain, FlopsAreThoseOfTheKeptPairs) {
  const int64_t per_pair = 2 * (16 + 8);
  EXPECT_EQ(explain(kQ, kK, kV).flops, 2 * 4 * 64 * 64 * per_pair);
  EXPECT_EQ(explain(kQ, kK, kV, {.mask = causal()}).flops, 2 * 4 * (64 * 65 / 2) * per_pair);
  EXPECT_EQ(explain(kQ, kK, kV, {.mask = window(0, 0)}).flops, 2 * 4 * 64 * per_pair);
  EXPECT_EQ(explain(kQ, kK, kV, {.mask = lengths(tensor<int32_t>({0, 10}, {2}))}).flops, 4 * 64 * 10 * per_pair);
  EXPECT_EQ(explain(kQ, kK, kV, {.mask = prefix(64)}).flops, 2 * 4 * 64 * 64 * per_pair);
}

TEST(Explain, BytesAreThoseOfInputsAndOutputs) {
  const int64_t o_and_q = 2 * 4 * 64 * ((16 + 8) * 4 + 4), k_and_v = 2 * 2 * 64 * (16 + 8) * 4;
  EXPECT_EQ(explain(kQ, kK, kV).bytes, o_and_q + k_and_v);
  EXPECT_EQ(explain(kQ, kK, kV, {.bias = {DenseBias{zeros({64, 64})}}}).bytes, o_and_q + k_and_v + 64 * 64 * 4);
}

TEST(Explain, ScratchDoesNotGrowWithThePairs) {
  float one = 1;
  const Tensor far = wrap(&one, {1, 1, 1000000, 1}, {0, 0, 0, 1}, DType::f32);
  const Tensor few = wrap(&one, {1, 1, 64, 1}, {0, 0, 0, 1}, DType::f32);
  EXPECT_LT(explain(few, far, far).scratch, 100 << 20);
}

TEST(Explain, ScratchCoversWhatACallTakes) {
  const auto covers = [](const Tensor& q, const Tensor& k, const Tensor& v, const AttentionOptions& options) {
    const int64_t before = scratch_use().now;
    attention(q, k, v, options);
    const Explanation said = explain(q, k, v, options);
    EXPECT_LE(scratch_use().now - before, said.scratch) << said.text();
  };
  covers(kQ, kK, kV, {.dropout = {0.5f, 1}});
  for (const DType type : {DType::f32, DType::bf16}) {
    covers(randn({1, 2, 1, 64}, 1, type), randn({1, 1, 20000, 64}, 2, type), randn({1, 1, 20000, 64}, 3, type), {});
    covers(randn({1, 1, 64, 64}, 1, type), randn({1, 1, 20000, 64}, 2, type), randn({1, 1, 20000, 64}, 3, type), {});
    covers(randn({1, 2, 200, 512}, 1, type), randn({1, 1, 200, 512}, 2, type), randn({1, 1, 200, 512}, 3, type), {});
  }
}

TEST(Explain, ALowerRungThanTheMachineHasIsNamed) {
  const std::string before(rung_name());
  const std::vector<RungInfo> rungs = machine_rungs();
  use_rung(rungs.front().name);
  const Explanation said = explain(kQ, kK, kV);
  use_rung(before);
  EXPECT_EQ(said.rung, rungs.front().name);
  const bool alone = rungs.size() < 2 || !rungs[1].usable;
  EXPECT_EQ(said.why.empty(), alone) << said.why;
}

TEST(Explain, RefusesWhatTheCallWouldRefuse) {
  EXPECT_TRUE(contains(test::refusal([] { explain(kQ, kK.slice(1, 0, 1), kV); }), "explain: "));
}

}  // namespace
}  // namespace mh
