// The same bits every time: over repeats, alone or in a batch, padded or packed.
#include <gtest/gtest.h>

#include "multihead/check/verdict.h"
#include "tests/harness/rungs.h"

namespace mh {
namespace {

// Sequence b of a tensor whose first axis is the batch; what repeats over the batch stays whole.
Tensor part(const Tensor& t, int64_t b, int64_t batch) {
  return t && t.size(0) == batch && batch > 1 ? t.slice(0, b, b + 1) : t;
}

// The same of one that broadcasts to (B, H, Tq, Tk).
Tensor pair_part(const Tensor& t, int64_t b, int64_t batch) { return t.rank() == 4 ? part(t, b, batch) : t; }

// The case's sequence b as a call of its own. Not packed.
CaseInputs alone(const CaseInputs& in, int64_t b, int64_t batch) {
  CaseInputs out{in.q.slice(0, b, b + 1),   in.k.slice(0, b, b + 1),  in.v.slice(0, b, b + 1),
                 in.d_o.slice(0, b, b + 1), part(in.d_lse, b, batch), in.options};
  Mask& mask = out.options.mask;
  for (Mask::Dense& each : mask.dense) each.where = pair_part(each.where, b, batch);
  for (Tensor& each : mask.lengths) each = part(each, b, batch);
  for (Tensor* each : {&mask.offsets, &mask.prefixes, &mask.query_documents, &mask.key_documents})
    *each = part(*each, b, batch);
  for (Bias& bias : out.options.bias) {
    if (auto* dense = std::get_if<DenseBias>(&bias)) dense->values = pair_part(dense->values, b, batch);
  }
  return out;
}

std::vector<AttentionCase> batches(int64_t count) {
  std::vector<AttentionCase> out;
  for (const AttentionCase& c : attention_cases(count)) {
    if (c.B > 1 && c.dropout == 0) out.push_back(c);
  }
  return out;
}

TEST(AttentionDeterminism, ASequenceHasTheSameBitsAloneOrInABatch) {
  int64_t compared = 0;  // cases, each on every rung: how many rungs there are depends on the machine and the build
  for (const AttentionCase& c : batches(harness::cases(600))) {
    if (c.packed) continue;
    const CaseInputs in = make_inputs(c);
    for (const harness::Step& step : harness::steps()) {
      if (!step.rung && c.dtype != DType::bf16) continue;
      const harness::Scope scope(step);
      const CaseOutputs together = run_case(in);
      const int64_t b = static_cast<int64_t>(c.seed % c.B);
      const CaseOutputs apart = run_case(alone(in, b, c.B));
      const auto whole = named_outputs(together), own = named_outputs(apart);
      for (size_t n = 0; n < 5; ++n) {
        EXPECT_TRUE(same_bits(whole[n].second.slice(0, b, b + 1), own[n].second))
            << step.name << " " << c.label() << ": " << whole[n].first << " of sequence " << b;
      }
    }
    ++compared;
  }
  EXPECT_GE(compared, harness::cases(60));
}

TEST(AttentionDeterminism, APackedSequenceHasTheBitsOfTheSameSequenceAlone) {
  int64_t compared = 0;
  for (AttentionCase c : batches(harness::cases(600))) {
    if (c.masks & ~(kMaskCausal | kMaskWindow | kMaskOffset)) continue;
    c.packed = true;
    c.mix = CaseMix::none;
    c.bias = c.seed % 2 == 0 ? CaseBias::none : CaseBias::alibi;
    const CaseInputs in = make_inputs(c);
    const Tensor cu_q = in.options.packed->cu_seqlens_q, cu_k = in.options.packed->cu_seqlens_k;
    const auto b = static_cast<int64_t>(c.seed % c.B);
    const auto piece = [&](const Tensor& t, const Tensor& cu) {
      return t.slice(0, cu.data<int32_t>()[b], cu.data<int32_t>()[b + 1]).transpose(0, 1).unsqueeze(0);
    };
    CaseInputs own{piece(in.q, cu_q), piece(in.k, cu_k), piece(in.v, cu_k), piece(in.d_o, cu_q), {}, in.options};
    own.options.packed.reset();
    if (in.d_lse) own.d_lse = in.d_lse.slice(1, cu_q.data<int32_t>()[b], cu_q.data<int32_t>()[b + 1]).unsqueeze(0);
    for (const harness::Step& step : harness::steps()) {
      if (!step.rung && c.dtype != DType::bf16) continue;
      const harness::Scope scope(step);
      const CaseOutputs together = run_case(in), apart = run_case(own);
      const AttentionGradients& g = together.gradients;
      EXPECT_TRUE(same_bits(piece(together.result.o, cu_q), apart.result.o)) << step.name << " " << c.label();
      EXPECT_TRUE(same_bits(piece(g.dq, cu_q), apart.gradients.dq)) << step.name << " dq " << c.label();
      EXPECT_TRUE(same_bits(piece(g.dk, cu_k), apart.gradients.dk)) << step.name << " dk " << c.label();
      EXPECT_TRUE(same_bits(piece(g.dv, cu_k), apart.gradients.dv)) << step.name << " dv " << c.label();
    }
    ++compared;
  }
  EXPECT_GE(compared, harness::cases(12));
}

TEST(AttentionDeterminism, APaddingMaskGivesTheBitsOfTheKeysItKeeps) {
  for (const int64_t Tk : {32, 128, 200}) {
    const int64_t kept = Tk * 3 / 4 - 1;
    const Tensor q = randn({1, 2, 70, 24}, 1), k = randn({1, 2, Tk, 24}, 2), v = randn({1, 2, Tk, 24}, 3);
    const Tensor where = zeros({1, 1, 1, Tk}, DType::boolean);
    for (int64_t j = 0; j < kept; ++j) where.data<bool>()[j] = true;
    for (const harness::Step& step : harness::steps()) {
      const harness::Scope scope(step);
      const AttentionResult masked = attention(q, k, v, {.mask = keep(where)});
      const AttentionResult cut = attention(q, k.slice(2, 0, kept), v.slice(2, 0, kept));
      EXPECT_TRUE(same_bits(masked.o, cut.o)) << step.name << " " << Tk;
      EXPECT_TRUE(same_bits(masked.lse, cut.lse)) << step.name << " " << Tk;
    }
  }
}

// One sequence has its documents in runs, which bound its rows; the other has them scattered.
TEST(AttentionDeterminism, DocumentsOfOneSequenceDecideNothingForAnother) {
  const int64_t T = 200;
  const Tensor ids = zeros({2, T}, DType::i32);
  for (int64_t j = 0; j < T; ++j) {
    ids.data<int32_t>()[j] = static_cast<int32_t>(j / 37);
    ids.data<int32_t>()[T + j] = static_cast<int32_t>(j % 3);
  }
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
    const Tensor q = randn({2, 2, T, 24}, 1, dtype), k = randn({2, 2, T, 24}, 2, dtype),
                 v = randn({2, 2, T, 24}, 3, dtype);
    for (const harness::Step& step : harness::steps()) {
      if (!step.rung && dtype != DType::bf16) continue;
      const harness::Scope scope(step);
      const CaseOutputs together = run_case({q, k, v, v, {}, {.mask = documents(ids)}});
      for (int64_t b = 0; b < 2; ++b) {
        const auto own = [b](const Tensor& x) { return x.slice(0, b, b + 1); };
        const CaseOutputs apart = run_case({own(q), own(k), own(v), own(v), {}, {.mask = documents(own(ids))}});
        const auto whole = named_outputs(together), alone = named_outputs(apart);
        for (size_t n = 0; n < 5; ++n)
          EXPECT_TRUE(same_bits(own(whole[n].second), alone[n].second))
              << step.name << " " << name(dtype) << " " << whole[n].first << " " << b;
      }
    }
  }
}

TEST(AttentionDeterminism, AThousandRepeatsGiveTheSameBits) {
  const std::vector<AttentionCase> cases{
      {.B = 2,
       .H = 4,
       .Hkv = 2,
       .Tq = 33,
       .Tk = 65,
       .Dk = 32,
       .Dv = 24,
       .masks = kMaskCausal,
       .bias = CaseBias::per_key,
       .sink = true,
       .seed = 1},
      {.dtype = DType::bf16, .B = 1, .H = 8, .Hkv = 1, .Tq = 1, .Tk = 700, .Dk = 64, .Dv = 64, .seed = 2},
      {.dtype = DType::f16,
       .B = 1,
       .H = 4,
       .Hkv = 1,
       .Tq = 40,
       .Tk = 40,
       .Dk = 16,
       .Dv = 16,
       .dropout = 0.1F,
       .seed = 3},
  };
  for (const AttentionCase& c : cases) {
    const CaseInputs in = make_inputs(c);
    for (const harness::Step& step : harness::steps()) {
      if (!step.rung && c.dtype != DType::bf16) continue;
      const harness::Scope scope(step);
      set_threads(3);
      const CaseOutputs first = run_case(in);
      for (int n = 0; n < std::max<int64_t>(50, harness::cases(1000)); ++n) {
        ASSERT_EQ(differing(first, run_case(in)), std::vector<std::string>{})
            << step.name << " " << c.label() << " repeat " << n;
      }
    }
  }
}

TEST(AttentionDeterminism, LongCallsHaveTheSameBitsForAnyNumberOfThreads) {
  const std::vector<AttentionCase> cases{
      {.B = 1,
       .H = 2,
       .Hkv = 1,
       .Tq = 700,
       .Tk = 1300,
       .Dk = 64,
       .Dv = 64,
       .masks = kMaskCausal,
       .bias = CaseBias::per_head,
       .d_lse = true,
       .seed = 4},
      {.dtype = DType::bf16, .B = 1, .H = 4, .Hkv = 1, .Tq = 2, .Tk = 9000, .Dk = 64, .Dv = 64, .seed = 5},
      {.dtype = DType::f16,
       .B = 1,
       .H = 1,
       .Hkv = 1,
       .Tq = 900,
       .Tk = 900,
       .Dk = 40,
       .Dv = 72,
       .bias = CaseBias::t5,
       .seed = 6},
      {.B = 1, .H = 1, .Hkv = 1, .Tq = 128, .Tk = 128, .Dk = 128, .Dv = 128, .masks = kMaskKeep, .seed = 7},
      {.B = 2, .H = 1, .Hkv = 1, .Tq = 512, .Tk = 512, .Dk = 32, .Dv = 32, .masks = kMaskCausal, .seed = 8},
      // Sequences of unlike lengths that add to one gradient.
      {.B = 9,
       .H = 2,
       .Hkv = 1,
       .Tq = 40,
       .Tk = 700,
       .Dk = 8,
       .Dv = 8,
       .bias = CaseBias::per_head,
       .packed = true,
       .seed = 9},
  };
  for (const AttentionCase& c : cases) {
    const CaseInputs in = make_inputs(c);
    for (const harness::Step& step : harness::steps()) {
      if (!step.rung && c.dtype != DType::bf16) continue;
      const harness::Scope scope(step);
      set_threads(1);
      const CaseOutputs first = run_case(in);
      for (int count : {2, 3, 7, 16}) {
        set_threads(count);
        EXPECT_EQ(differing(first, run_case(in)), std::vector<std::string>{})
            << step.name << " " << c.label() << " " << count;
      }
    }
  }
}

}  // namespace
}  // namespace mh
