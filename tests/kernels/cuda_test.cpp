// What of the CUDA part runs without a GPU: masks by tiles, the meaning of a pair, plans, argument packing.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "multihead/check/problem.h"
#include "multihead/kernels/cuda/hopper/task.h"
#include "multihead/kernels/cuda/pack.h"
#include "multihead/kernels/cuda/pairs.h"
#include "multihead/kernels/cuda/plan.h"

namespace mh::kernels::cuda {
namespace {

std::vector<Interval> some_masks() {
  std::vector<Interval> masks;
  for (int k_len : {0, 1, 75})
    for (int position : {-30, 0, 25})
      for (int behind : {0, 9, kFar})
        for (int ahead : {0, 5, kFar})
          for (int prefix : {0, 40, kFar}) masks.push_back({position, k_len, behind, ahead, prefix});
  return masks;
}

// The rule of kernels/attention.h, word for word.
bool kept(const Interval& m, int64_t i, int64_t j) {
  const int64_t p = m.position + i;
  if (j < 0 || j >= m.k_len) return false;
  if (m.behind < kFar && j < p - m.behind) return false;
  if (m.ahead < kFar && j > p + m.ahead) return false;
  return m.prefix >= kFar || j <= std::max<int64_t>(p, m.prefix - 1);
}

TEST(CudaMask, IntervalKeepsWhatTheRuleKeeps) {
  for (const Interval& m : some_masks())
    for (int i = 0; i < 66; ++i)
      for (int j = 0; j < 80; ++j)
        ASSERT_EQ(m.keeps(i, j), kept(m, i, j)) << m.position << ' ' << m.k_len << ' ' << i << ' ' << j;
}

TEST(CudaMask, BlocksHoldEveryKeptPairAndWholeBlocksDropNone) {
  constexpr int kRows = 32, kWidth = 16;
  for (const Interval& m : some_masks()) {
    for (int i0 = 0; i0 < 64; i0 += kRows) {
      const Blocks blocks = blocks_of(m, i0, i0 + kRows, kWidth);
      ASSERT_LT(blocks.first, blocks.last);
      ASSERT_GE(blocks.first, 0);
      for (int n = 0; n < 6; ++n) {
        int count = 0;
        for (int i = i0; i < i0 + kRows; ++i)
          for (int j = n * kWidth; j < (n + 1) * kWidth; ++j) count += kept(m, i, j);
        if (n < blocks.first || n >= blocks.last) {
          ASSERT_EQ(count, 0);
        }
        if (n >= std::max(blocks.first, blocks.whole_first) && n < std::min(blocks.last, blocks.whole_last)) {
          ASSERT_EQ(count, kRows * kWidth);
        }
        ASSERT_EQ(m.whole(i0, i0 + kRows, n * kWidth, (n + 1) * kWidth), count == kRows * kWidth);
      }
    }
  }
}

TEST(CudaMask, RowsOutsideTheRangeOfAKeyBlockKeepNoneOfIt) {
  for (const Interval& m : some_masks())
    for (int j0 = 0; j0 < 80; j0 += 16) {
      const int first = m.first_row(j0), end = m.end_row(j0 + 16, 66);
      for (int i = 0; i < 66; ++i)
        for (int j = j0; j < j0 + 16; ++j) ASSERT_TRUE(!kept(m, i, j) || (i >= first && i < end)) << i << ' ' << j;
    }
}

TEST(CudaMask, AKeyIsKeptByTheRowsOfItsRangeAndNoOthers) {
  for (const Interval& m : some_masks())
    for (int j = 0; j < m.k_len; ++j)
      for (int i = 0; i < 66; ++i)
        ASSERT_EQ(kept(m, i, j), i >= m.first_row(j) && i < m.end_row(j + 1, kFar)) << i << ' ' << j;
}

TEST(CudaTiles, FactsOfATileNameItsRowsBlocksAndPlaces) {
  Call call;
  call.H = 4, call.Hkv = 2, call.options.ahead = 0;
  call.o = {nullptr, Element::bf16, {8000, 2000, 16, 1}};
  float lse = 0;
  call.lse = {&lse, Element::f32, {500, 125, 1, 0}};
  const Span span{.batch = 0, .q_begin = 40, .q_len = 300, .k_begin = 7, .k_len = 500, .position = 200, .prefix = 0};
  const Interval mask = interval_of(call.options, span);
  Facts facts{};
  tell<128, 64>(facts, call, {.m = 1, .h = 3, .b = 2}, span, mask, blocks_of(mask, 128, 256, 64), call.o);
  EXPECT_EQ(facts.batch, 2);
  EXPECT_EQ(facts.row, 128);
  EXPECT_EQ(facts.rows, 300);
  EXPECT_EQ(facts.first, 0);
  EXPECT_EQ(facts.last, 8);           // row 255 sits at 455: keys to 455, blocks of 64
  EXPECT_EQ(facts.whole_last[0], 5);  // row 128 keeps keys to 328
  EXPECT_EQ(facts.whole_last[1], 6);  // row 192 keeps keys to 392
  EXPECT_EQ(facts.at, 3 * 2000 + 40 * 16);
  EXPECT_EQ(facts.lse_at, 3 * 125 + 40);
  const Interval told = mask_of(facts, call.options);
  for (int i = 0; i < 300; ++i) ASSERT_EQ(told.high(i), mask.high(i));
}

TEST(CudaPairs, DropoutBitsAreThoseOfTheReference) {
  std::mt19937 random(5);
  for (int n = 0; n < 1000; ++n) {
    const uint64_t seed = random() * 4294967296ull + random();
    const int b = random() % 9, h = random() % 9, i = random() % 5000, j = random() % 5000;
    ASSERT_EQ(dropout_bits(seed, b, h, i, j), reference::dropout_bits(seed, b, h, i, j));
  }
}

TEST(CudaPairs, DropoutScalesByTheShareItsThresholdKeeps) {
  Options o;
  EXPECT_EQ(dropout_factor(o, 0, 0, 0, 0), 1);
  o.dropout_threshold = 65536;
  EXPECT_EQ(dropout_factor(o, 0, 0, 0, 0), 0);
  o.dropout_threshold = 16384;
  int zeros = 0;
  for (int j = 0; j < 4000; ++j) {
    const float f = dropout_factor(o, 1, 2, 3, j);
    ASSERT_TRUE(f == 0 || f == 65536.0f / 49152.0f);
    zeros += f == 0;
  }
  EXPECT_NEAR(zeros, 1000, 120);
}

Call plain_call(Element type, int T, int D) {
  alignas(16) static char memory[16];
  Call c;
  c.B = c.batch = 2, c.H = 4, c.Hkv = 2, c.Dk = c.Dv = D, c.Tq = c.Tk = c.q_rows = c.k_rows = T;
  const Array a{memory, type, {int64_t{4} * T * D, int64_t{T} * D, D, 1}};
  c.q = c.k = c.v = c.o = c.d_o = c.dq = c.dk = c.dv = a;
  return c;
}

TEST(CudaPlan, EveryPlanNamesAShapeThatFitsTheCall) {
  for (Element type : {Element::bf16, Element::f16})
    for (int D : {8, 64, 72, 128})
      for (int T : {1, 512, 1024, 2048, 4096, 16384})
        for (bool causal : {false, true}) {
          Call c = plain_call(type, T, D);
          if (causal) c.options.ahead = 0;
          ASSERT_EQ(hopper_refuses_backward(c), nullptr);
          const ForwardEntry& f = kForwardShapes[forward_shape(c)];
          const DqEntry& q = kDqShapes[dq_shape(c)];
          const DkvEntry& k = kDkvShapes[dkv_shape(c)];
          for (int width : {f.D, q.D, k.D}) ASSERT_EQ(width, D <= 64 ? 64 : 128);
          ASSERT_TRUE(f.type == type && q.type == type && k.type == type);
          ASSERT_TRUE(f.masked == causal && q.masked == causal && k.masked == causal);
          ASSERT_FALSE(f.fixed && type == Element::f16) << "P of f16 overflows where the reference stays";
        }
}

TEST(CudaPlan, WideHeadsAndOptionsGetAForwardShapeThatTakesThem) {
  for (Element type : {Element::bf16, Element::f16})
    for (int D : {64, 128, 136, 192, 200, 256}) {
      Call c = plain_call(type, 512, D);
      c.options.cap = 1;
      ASSERT_EQ(hopper_refuses_forward(c), nullptr);
      const ForwardEntry& f = kForwardShapes[forward_shape(c)];
      ASSERT_TRUE(f.type == type && f.options && f.masked && !f.fixed);
      ASSERT_EQ(f.D, (D + 63) / 64 * 64);
    }
}

TEST(CudaPlan, RefusalsSayWhy) {
  EXPECT_STREQ(hopper_refuses_forward(plain_call(Element::f32, 64, 64)), "the tensor cores' kernels take bf16 and f16");
  EXPECT_STREQ(hopper_refuses_forward(plain_call(Element::bf16, 64, 264)), "heads are wider than 256");
  EXPECT_STREQ(hopper_refuses_backward(plain_call(Element::bf16, 64, 136)), "heads are wider than 128");
  EXPECT_STREQ(hopper_refuses_forward(plain_call(Element::bf16, 64, 60)), "rows are not aligned to 16 bytes");
  Call c = plain_call(Element::bf16, 64, 64);
  c.options.cap = 1;
  EXPECT_STREQ(hopper_refuses_backward(c), "scores are capped");
}

TEST(CudaPlan, TilesComeOnceEachWhateverTheOrder) {
  Task task;
  task.blocks = 5, task.heads = 7, task.group = 3, task.tiles = 35;
  for (bool ordered : {false, true}) {
    std::vector<int> seen(35);
    for (int t = 0; t < 35; ++t) {
      const TileAt at = ordered ? tile_at<true>(task, t, 7) : tile_at<false>(task, t, 7);
      ++seen[(at.b * 7 + at.h) * 5 + at.m];
    }
    EXPECT_EQ(std::count(seen.begin(), seen.end(), 1), 35);
  }
}

TEST(CudaPlan, DecodeChunksCoverTheKeysAndFitTheJoin) {
  for (int k_len : {1, 127, 128, 8192, 8193, 100000, 131072, 1 << 24}) {
    ASSERT_GE(int64_t{decode_chunk(k_len)} * decode_chunks(k_len), k_len);
    ASSERT_LE(decode_chunks(k_len), 256);
    for (int shorter : {1, 5000, 8192, 9000})
      ASSERT_TRUE(shorter > k_len || decode_chunks(shorter) <= most_decode_chunks(k_len));
  }
}

TEST(CudaPack, PaddedCallsAlikeNeedNoSpans) {
  std::vector<Sequence> sequences(2);
  for (int b = 0; b < 2; ++b) sequences[b] = {.batch = b, .q_len = 5, .k_len = 9, .position = 4};
  float memory = 0;
  AttentionForwardArgs args;
  args.q = {&memory, DType::bf16, 4, {2, 4, 5, 16, 1, 1}, {320, 80, 16, 1, 0, 0}};
  args.kv.k = args.kv.v = {&memory, DType::bf16, 4, {2, 2, 9, 16, 1, 1}, {288, 144, 16, 1, 0, 0}};
  args.o = args.q;
  args.sequences = {sequences.data(), 2};
  args.scores.ahead = 0;
  Packed packed = pack(args);
  EXPECT_TRUE(packed.spans.empty());
  EXPECT_EQ(packed.call.span.position, 4);
  EXPECT_EQ(packed.call.Tq, 5);
  EXPECT_EQ(packed.call.Tk, 9);
  EXPECT_EQ(packed.call.options.ahead, 0);
  EXPECT_EQ(packed.call.options.behind, kFar);
  EXPECT_EQ(packed.call.q.stride[1], 80);
  sequences[1].k_len = 3;
  packed = pack(args);
  ASSERT_EQ(packed.spans.size(), 2u);
  EXPECT_EQ(packed.spans[1].k_len, 3);
}

}  // namespace
}  // namespace mh::kernels::cuda
