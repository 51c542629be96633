// Bad input: one sentence with the op and the shapes, and nothing written.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "multihead/ops/attention/attention.h"
#include "tests/ops/compare.h"

namespace mh {
namespace {

using test::contains;
using test::kPoison;
using test::refusal;

// attention_into over poisoned outputs: the sentence, once it is sure that nothing was written.
std::string refused(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionOptions& options = {}) {
  const AttentionResult out{full({2, 4, 8, 16}, kPoison), full({2, 4, 8}, kPoison)};
  const std::string sentence = refusal([&] { attention_into(out, q, k, v, options); });
  EXPECT_TRUE(test::same_bits(out.o, full({2, 4, 8, 16}, kPoison))) << "o was written";
  EXPECT_TRUE(test::same_bits(out.lse, full({2, 4, 8}, kPoison))) << "lse was written";
  EXPECT_NE(sentence, "") << "not refused";
  EXPECT_EQ(sentence.rfind("attention_into: ", 0), 0U) << sentence;
  EXPECT_TRUE(contains(sentence, "is ["));
  EXPECT_EQ(sentence.find('\n'), std::string::npos);
  return sentence;
}

struct AttentionRefuses : testing::Test {
  const Tensor q = randn({2, 4, 8, 16}, 1), k = randn({2, 2, 12, 16}, 2), v = randn({2, 2, 12, 16}, 3);
  std::string with(const AttentionOptions& options) const { return refused(q, k, v, options); }
};

TEST_F(AttentionRefuses, NothingWrong) {
  const AttentionResult out{full({2, 4, 8, 16}, kPoison), full({2, 4, 8}, kPoison)};
  EXPECT_EQ(refusal([&] { attention_into(out, q, k, v); }), "");
  EXPECT_FALSE(test::same_bits(out.o, full({2, 4, 8, 16}, kPoison)));
}

TEST_F(AttentionRefuses, MissingInputs) {
  EXPECT_TRUE(contains(refusal([&] { attention({}, k, v); }), "q has no memory"));
  EXPECT_TRUE(contains(refused(q, {}, v), "k has no memory"));
  EXPECT_TRUE(contains(refused(q, k, {}), "v has no memory"));
}

TEST_F(AttentionRefuses, WrongRanks) {
  EXPECT_TRUE(contains(refused(randn({8, 16}, 1), k, v), "q has rank 2; expected (B, H, T, D)"));
  EXPECT_TRUE(contains(refused(q, k.select(0, 0), v), "k has rank 3"));
  EXPECT_TRUE(contains(refused(q, k, v.unsqueeze(0)), "v has rank 5"));
}

TEST_F(AttentionRefuses, HeadCountsThatDoNotDivide) {
  const std::string sentence = refused(q, randn({2, 3, 12, 16}, 2), randn({2, 3, 12, 16}, 3));
  EXPECT_TRUE(contains(sentence, "3 key heads do not divide 4 query heads; q is [2, 4, 8, 16], k is [2, 3, 12, 16]"));
  EXPECT_TRUE(contains(refused(q, k, randn({2, 4, 12, 16}, 3)), "k has 2 heads and v 4"));
  EXPECT_TRUE(contains(refused(q, randn({2, 0, 12, 16}, 2), randn({2, 0, 12, 16}, 3)), "0 key heads"));
}

TEST_F(AttentionRefuses, SizesThatDiffer) {
  EXPECT_TRUE(contains(refused(q, randn({2, 2, 12, 15}, 2), v), "heads of q are 16 wide and those of k 15"));
  EXPECT_TRUE(contains(refused(q, k, randn({2, 2, 11, 16}, 3)), "k has 12 rows and v 11"));
  EXPECT_TRUE(
      contains(refused(q, randn({3, 2, 12, 16}, 2), randn({3, 2, 12, 16}, 3)), "batches of q, k and v are 2, 3 and 3"));
}

TEST_F(AttentionRefuses, WrongTypes) {
  EXPECT_TRUE(contains(refused(q, k.to(DType::bf16), v), "q holds f32, k bf16 and v f32; expected one type"));
  EXPECT_TRUE(contains(refused(q.to(DType::f64), k.to(DType::f64), v.to(DType::f64)),
                       "q holds f64; expected f32, bf16 or f16"));
  EXPECT_TRUE(contains(refused(zeros({2, 4, 8, 16}, DType::i32), k, v), "q holds i32"));
}

TEST_F(AttentionRefuses, WidthsOutsideOneTo512) {
  EXPECT_TRUE(contains(refused(randn({2, 4, 8, 513}, 1), randn({2, 2, 12, 513}, 2), v), "513 wide; expected 1 to 512"));
  EXPECT_TRUE(contains(refused(randn({2, 4, 8, 0}, 1), randn({2, 2, 12, 0}, 2), v), "0 wide; expected 1 to 512"));
  EXPECT_TRUE(contains(refused(q, k, randn({2, 2, 12, 600}, 3)), "600 wide"));
}

TEST_F(AttentionRefuses, LastStridesOtherThanOne) {
  EXPECT_TRUE(contains(refused(randn({2, 4, 16, 8}, 1).transpose(2, 3), k, v), "q has a last stride of 8; expected 1"));
  EXPECT_TRUE(contains(refused(q, randn({2, 2, 16, 12}, 1).transpose(2, 3), v), "k has a last stride of 12"));
}

TEST_F(AttentionRefuses, SizesWhoseProductOverflows) {
  float one = 1;
  const int64_t huge = int64_t{1} << 31;
  const Tensor far = wrap(&one, {huge - 1, huge / 2 - 1, 1, 1}, {0, 0, 0, 1}, DType::f32);
  EXPECT_TRUE(contains(refused(far, far, far), "multiply past 63 bits"));
  const Tensor longer = wrap(&one, {1, 1, huge, 1}, {0, 0, 0, 1}, DType::f32);
  EXPECT_TRUE(contains(refused(longer, longer, longer), "axis 2 of q is 2147483648 long; expected at most 2147483647"));
}

TEST_F(AttentionRefuses, OutputsOfTheWrongShapeOrType) {
  const auto into = [&](const AttentionResult& out) { return refusal([&] { attention_into(out, q, k, v); }); };
  EXPECT_TRUE(contains(into({Tensor{}, Tensor{}}), "o has no memory; expected f32 [2, 4, 8, 16]"));
  EXPECT_TRUE(contains(into({zeros({2, 4, 8, 15}), Tensor{}}), "o is f32 [2, 4, 8, 15]; expected f32 [2, 4, 8, 16]"));
  EXPECT_TRUE(contains(into({zeros({2, 4, 8, 16}, DType::bf16), Tensor{}}), "o is bf16"));
  EXPECT_TRUE(contains(into({zeros({2, 4, 8, 16}), zeros({2, 4, 7})}), "lse is f32 [2, 4, 7]; expected f32 [2, 4, 8]"));
  EXPECT_TRUE(contains(into({zeros({2, 4, 8, 16}), zeros({2, 4, 8}, DType::f64)}), "lse is f64"));
  EXPECT_TRUE(contains(into({zeros({2, 4, 16, 8}).transpose(2, 3), Tensor{}}), "o has a last stride of 8"));
}

TEST_F(AttentionRefuses, OutputsThatOverlap) {
  const auto into = [&](const AttentionResult& out) { return refusal([&] { attention_into(out, q, k, v); }); };
  EXPECT_TRUE(contains(into({q, Tensor{}}), "o shares memory with q"));
  const Tensor both = full({2, 4, 9, 16}, kPoison);
  const Tensor o = both.slice(2, 0, 8), lse = wrap(both.data<float>(), {2, 4, 8}, DType::f32);
  EXPECT_TRUE(contains(into({o, lse}), "lse shares memory with o"));
  EXPECT_TRUE(test::same_bits(both, full({2, 4, 9, 16}, kPoison)));
  EXPECT_TRUE(
      contains(into({zeros({1, 4, 8, 16}).broadcast_to({2, 4, 8, 16}), Tensor{}}), "o holds some element twice"));
  const Tensor sink = zeros({4});
  EXPECT_TRUE(contains(refusal([&] {
                         attention_into(
                             {zeros({2, 4, 8, 16}), wrap(sink.data<float>(), {2, 4, 8}, {1, 1, 1}, DType::f32)}, q, k,
                             v, {.sink = sink});
                       }),
                       "lse holds some element twice"));
}

TEST_F(AttentionRefuses, LengthsOutsideTheKeys) {
  EXPECT_TRUE(contains(with({.mask = lengths(tensor<int32_t>({12, 13}, {2}))}), "lengths[1] is 13; expected 0 to 12"));
  EXPECT_TRUE(contains(with({.mask = lengths(tensor<int32_t>({-1, 3}, {2}))}), "lengths[0] is -1"));
  EXPECT_TRUE(
      contains(with({.mask = lengths(tensor<int32_t>({1, 2, 3}, {3}))}), "lengths is i32 [3]; expected i32 (2)"));
  EXPECT_TRUE(contains(with({.mask = lengths(tensor<int64_t>({1, 2}, {2}))}), "lengths is i64 [2]"));
}

TEST_F(AttentionRefuses, PositionsThatOverflow) {
  EXPECT_TRUE(contains(with({.mask = causal(INT64_MAX)}), "the offset is 9223372036854775807; expected at most 2^40"));
  EXPECT_TRUE(contains(with({.mask = causal(INT64_MIN)}), "expected at most 2^40"));
  EXPECT_TRUE(contains(with({.mask = causal(tensor<int32_t>({1}, {1}))}), "offsets is i32 [1]; expected i32 (2)"));
  EXPECT_TRUE(
      contains(with({.mask = causal(tensor<int32_t>({INT32_MAX, INT32_MIN}, {2})), .bias = {AlibiBias{zeros({4})}}}),
               "distances apart"));
}

TEST_F(AttentionRefuses, MasksOfTheWrongShapeOrType) {
  EXPECT_TRUE(contains(with({.mask = keep(zeros({8, 11}, DType::boolean))}),
                       "a mask is [8, 11]; expected one that broadcasts to [2, 4, 8, 12]"));
  EXPECT_TRUE(contains(with({.mask = keep(zeros({8, 12}))}), "a mask holds f32; expected bool or u8"));
  EXPECT_TRUE(contains(with({.mask = keep(zeros({1, 2, 4, 8, 12}, DType::u8))}), "expected rank 4 or less"));
  EXPECT_TRUE(
      contains(with({.mask = keep(zeros({12, 8}, DType::u8).transpose(0, 1))}), "last stride of 8; expected 1, or 0"));
  Mask five;
  for (int n = 0; n < 5; ++n) five = five & keep(zeros({12}, DType::u8));
  EXPECT_TRUE(contains(with({.mask = five}), "5 dense masks are joined; expected at most 4"));
  Mask negative;
  negative.behind = -3;
  EXPECT_TRUE(contains(with({.mask = negative}), "the window is (-3, -1)"));
  EXPECT_TRUE(contains(with({.mask = prefix(tensor<int32_t>({1, -2}, {2}))}), "prefix[1] is -2"));
  EXPECT_TRUE(contains(with({.mask = documents(zeros({2, 11}, DType::i32))}),
                       "documents of the keys is i32 [2, 11]; expected i32 (2, 12)"));
  EXPECT_TRUE(contains(with({.mask = documents(zeros({2, 7}, DType::i32), zeros({2, 12}, DType::i32))}),
                       "documents of the queries"));
  EXPECT_TRUE(contains(with({.mask = documents(zeros({2, 8}, DType::i32), {})}), "keys have none"));
}

TEST_F(AttentionRefuses, BiasesOfTheWrongShapeOrType) {
  EXPECT_TRUE(contains(with({.bias = {DenseBias{zeros({3, 8, 12})}}}),
                       "bias is [3, 8, 12]; expected one that broadcasts to [2, 4, 8, 12]"));
  EXPECT_TRUE(contains(with({.bias = {DenseBias{zeros({8, 12}, DType::i32)}}}), "bias holds i32"));
  EXPECT_TRUE(contains(with({.bias = {DenseBias{zeros({8, 12})}, DenseBias{zeros({8, 12})}}}), "two dense biases"));
  EXPECT_TRUE(contains(with({.bias = {AlibiBias{zeros({4})}, T5Bias{zeros({8, 4})}}}), "two biases by distance"));
  EXPECT_TRUE(contains(with({.bias = {AlibiBias{zeros({3})}}}), "slopes is f32 [3]; expected f32 (4)"));
  EXPECT_TRUE(
      contains(with({.bias = {T5Bias{zeros({8, 3})}}}), "the T5 table is f32 [8, 3]; expected f32 (buckets, 4)"));
  EXPECT_TRUE(contains(with({.bias = {T5Bias{zeros({2, 4})}}}), "2 buckets; expected an even number from 4"));
  EXPECT_TRUE(contains(with({.bias = {T5Bias{zeros({8, 4}), true, 2}}}), "largest distance of the T5 bias is 2"));
}

TEST_F(AttentionRefuses, NumbersThatMakeNoSense) {
  EXPECT_TRUE(contains(with({.dropout = {1.5f, 0}}), "dropout p is 1.5; expected 0 to 1"));
  EXPECT_TRUE(contains(with({.dropout = {-0.1f, 0}}), "dropout p is -0.1"));
  EXPECT_TRUE(contains(with({.dropout = {NAN, 0}}), "dropout p is nan"));
  EXPECT_TRUE(contains(with({.cap = -1.0f}), "cap is -1"));
  EXPECT_TRUE(contains(with({.cap = INFINITY}), "cap is inf"));
  EXPECT_TRUE(contains(with({.similarity = DotSimilarity{NAN}}), "scale is nan; expected a finite number"));
  EXPECT_TRUE(contains(with({.similarity = CosineSimilarity{INFINITY}}), "tau is inf"));
  EXPECT_TRUE(contains(with({.similarity = CosineSimilarity{1, zeros({2})}}), "taus is f32 [2]; expected f32 (4)"));
  EXPECT_TRUE(contains(with({.sink = zeros({5})}), "sink is f32 [5]; expected f32 (4)"));
}

TEST_F(AttentionRefuses, MixesThatDoNotFitOrLeak) {
  EXPECT_TRUE(
      contains(with({.score_mix = HeadMix{zeros({4, 3})}}), "the mix over heads is f32 [4, 3]; expected f32 (4, 4)"));
  EXPECT_TRUE(
      contains(with({.score_mix = KeyMix{zeros({8, 8})}}), "the mix over keys is f32 [8, 8]; expected f32 (12, 12)"));
  for (const Mask& mask : {causal(), prefix(2), window(-1, 0)}) {
    EXPECT_TRUE(contains(with({.mask = mask, .score_mix = KeyMix{zeros({12, 12})}}), "would let later keys leak"));
  }
}

struct PackedAttentionRefuses : testing::Test {
  const Tensor q = randn({8, 4, 16}, 1), k = randn({12, 2, 16}, 2), v = randn({12, 2, 16}, 3);
  std::string with(const std::vector<int32_t>& cu_q, const std::vector<int32_t>& cu_k) const {
    const auto list = [](const std::vector<int32_t>& numbers) {
      return tensor<int32_t>(numbers, {static_cast<int64_t>(numbers.size())});
    };
    return refused(q, k, v, {.packed = Packed{list(cu_q), list(cu_k)}});
  }
};

TEST_F(PackedAttentionRefuses, BoundariesThatDecrease) {
  EXPECT_TRUE(contains(with({0, 5, 3, 8}, {0, 4, 8, 12}), "cu_seqlens_q falls from 5 to 3 at entry 2"));
  EXPECT_TRUE(contains(with({0, 3, 5, 8}, {0, 9, 8, 12}), "cu_seqlens_k falls from 9 to 8 at entry 2"));
}

TEST_F(PackedAttentionRefuses, BoundariesThatDoNotBeginAtZeroOrEndAtTheEnd) {
  EXPECT_TRUE(contains(with({1, 8}, {0, 12}), "cu_seqlens_q begins with 1; expected 0"));
  EXPECT_TRUE(contains(with({0, 8}, {-1, 12}), "cu_seqlens_k begins with -1"));
  EXPECT_TRUE(contains(with({0, 7}, {0, 12}), "cu_seqlens_q ends with 7; expected the 8 rows of q"));
  EXPECT_TRUE(contains(with({0, 8}, {0, 13}), "cu_seqlens_k ends with 13; expected the 12 rows of k"));
}

TEST_F(PackedAttentionRefuses, BoundariesOfTheWrongKind) {
  EXPECT_TRUE(contains(with({0, 4, 8}, {0, 12}), "cu_seqlens_q has 3 entries and cu_seqlens_k 2"));
  EXPECT_TRUE(contains(refused(q, k, v, {.packed = Packed{{}, {}}}), "cu_seqlens_q has no memory"));
  EXPECT_TRUE(
      contains(refused(q, k, v, {.packed = Packed{tensor<int64_t>({0, 8}, {2}), tensor<int64_t>({0, 12}, {2})}}),
               "cu_seqlens_q is i64"));
  EXPECT_TRUE(contains(refused(q, k, v, {.packed = Packed{zeros({0}, DType::i32), zeros({0}, DType::i32)}}),
                       "cu_seqlens_q is i32 [0]"));
  EXPECT_TRUE(contains(
      refused(q.unsqueeze(0), k, v, {.packed = Packed{tensor<int32_t>({0, 8}, {2}), tensor<int32_t>({0, 12}, {2})}}),
      "q has rank 4; expected (T, H, D) for a packed batch"));
}

struct BackwardRefuses : testing::Test {
  const Tensor q = randn({2, 4, 8, 16}, 1), k = randn({2, 2, 12, 16}, 2), v = randn({2, 2, 12, 16}, 3),
               d_o = randn({2, 4, 8, 16}, 4);
  const AttentionCall call{q, k, v, attention(q, k, v)};

  // attention_backward_into poisoned gradients.
  std::string into(AttentionGradients out, const AttentionCall& given, const OutputGradients& gradients,
                   const AttentionOptions& options = {}) const {
    const Tensor dq = full(q.shape(), kPoison), dv = full(v.shape(), kPoison);
    if (!out.dq) out.dq = dq;
    if (!out.dv) out.dv = dv;
    const std::string sentence = refusal([&] { attention_backward_into(out, given, gradients, options); });
    EXPECT_TRUE(test::same_bits(dq, full(q.shape(), kPoison)) && test::same_bits(dv, full(v.shape(), kPoison)))
        << "a gradient was written";
    EXPECT_EQ(sentence.rfind("attention_backward: ", 0), 0U) << sentence;
    return sentence;
  }
};

TEST_F(BackwardRefuses, InputsThatAreNotThoseOfTheCall) {
  EXPECT_TRUE(contains(into({}, call, {}), "d_o has no memory"));
  EXPECT_TRUE(
      contains(into({}, call, {randn({2, 4, 8, 15}, 4), {}}), "d_o is f32 [2, 4, 8, 15]; expected f32 [2, 4, 8, 16]"));
  EXPECT_TRUE(contains(into({}, call, {d_o, randn({2, 4, 9}, 4)}), "d_lse is f32 [2, 4, 9]"));
  EXPECT_TRUE(contains(into({}, {q, k, v, {call.result.o, {}}}, {d_o, {}}), "lse has no memory"));
  EXPECT_TRUE(contains(into({}, {q, k, v, {q.to(DType::bf16), call.result.lse}}, {d_o, {}}), "o is bf16"));
  EXPECT_TRUE(contains(into({}, {q, k, {}, call.result}, {d_o, {}}), "v has no memory"));
}

TEST_F(BackwardRefuses, GradientsOfTheWrongShapeOrOfNothing) {
  EXPECT_TRUE(contains(into({.dk = zeros({2, 2, 12, 15})}, call, {d_o, {}}), "dk is f32 [2, 2, 12, 15]"));
  EXPECT_TRUE(contains(into({.dsink = zeros({4})}, call, {d_o, {}}), "dsink is asked for"));
  EXPECT_TRUE(contains(into({.dtau = zeros({4})}, call, {d_o, {}}), "dtau is asked for"));
  EXPECT_TRUE(contains(into({.dmix = zeros({4, 4})}, call, {d_o, {}}), "dmix is asked for"));
  EXPECT_TRUE(contains(into({.dbias = {zeros({1})}}, call, {d_o, {}}), "1 gradients for 0 biases"));
}

TEST_F(BackwardRefuses, GradientsThatOverlap) {
  EXPECT_TRUE(contains(into({.dk = k}, call, {d_o, {}}), "dk shares memory with k"));
  EXPECT_TRUE(contains(into({.dq = d_o}, call, {d_o, {}}), "dq shares memory with d_o"));
  EXPECT_TRUE(contains(into({.dq = call.result.o}, call, {d_o, {}}), "dq shares memory with o"));
  const Tensor shared = zeros({2, 2, 12, 16});
  EXPECT_TRUE(contains(into({.dk = shared, .dv = shared}, call, {d_o, {}}), "dv shares memory with another gradient"));
}

TEST(WeightsRefuse, RowsAndHeadsThatAreNotThere) {
  const Tensor q = randn({1, 2, 3, 4}, 1), k = randn({1, 2, 5, 4}, 2), lse = zeros({1, 2, 3});
  EXPECT_TRUE(
      contains(refusal([&] { attention_weights(q, k, lse, {}, {2}); }), "head 2 is asked for; expected 0 to 1"));
  EXPECT_TRUE(contains(refusal([&] { attention_weights(q, k, lse, {}, {}, {0, -1}); }), "row -1 is asked for"));
  EXPECT_TRUE(contains(refusal([&] { attention_weights(q, k, {}); }), "lse has no memory"));
  EXPECT_TRUE(contains(refusal([&] { attention_weights(q, k, zeros({1, 2, 4})); }), "lse is f32 [1, 2, 4]"));
  EXPECT_TRUE(contains(refusal([&] { attention_statistics(q, k, lse, {}, 65); }),
                       "the top 65 keys are asked for; expected 0 to 64"));
}

}  // namespace
}  // namespace mh
