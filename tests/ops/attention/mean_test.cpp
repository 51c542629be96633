// The mean of the weights over heads, in the pass that computes the call: over the table of cases, on every rung.
#include <gtest/gtest.h>

#include <limits>

#include "multihead/check/cases/cases.h"
#include "multihead/check/reference.h"
#include "tests/harness/rungs.h"
#include "tests/ops/compare.h"

namespace mh {
namespace {

using test::contains;
using test::kPoison;
using test::numbers;
using test::refusal;
using test::same_bits;

struct WithMean {
  AttentionResult result;
  Tensor mean;
};

WithMean run(const CaseInputs& in) {
  const AttentionResult like = attention(in.q, in.k, in.v, in.options);
  const Tensor weights = attention_weights(in.q, in.k, like.lse, in.options);
  WithMean out{{empty_like(like.o), full(like.lse.shape(), kPoison)},
               full({weights.size(0), weights.size(2), weights.size(3)}, kPoison)};
  attention_mean_into(out.mean, {in.q, in.k, in.v, out.result}, in.options);
  return out;
}

std::vector<double> mean_of_heads(const Tensor& weights) {
  const int64_t H = weights.size(1), pairs = weights.size(2) * weights.size(3);
  const std::vector<double> p = numbers(weights);
  std::vector<double> mean(static_cast<size_t>(weights.size(0) * pairs));
  for (size_t n = 0; n < p.size(); ++n) {
    const int64_t at = static_cast<int64_t>(n), b = at / (H * pairs);
    mean[static_cast<size_t>(b * pairs + at % pairs)] += p[n] / static_cast<double>(H);
  }
  return mean;
}

// The largest difference; infinity where only one of a pair is finite.
double difference(const Tensor& a, const std::vector<double>& b) {
  const std::vector<double> x = numbers(a);
  double largest = x.size() == b.size() ? 0 : HUGE_VAL;
  for (size_t n = 0; n < x.size() && n < b.size(); ++n) {
    if (x[n] != b[n]) largest = std::max(largest, std::isfinite(x[n] - b[n]) ? std::abs(x[n] - b[n]) : HUGE_VAL);
  }
  return largest;
}

TEST(AttentionMean, IsThatOfTheReferenceOnEveryRung) {
  for (const AttentionCase& c : attention_cases(harness::cases(400))) {
    if (c.growth != 0) continue;  // logits of thousands: what f32 makes of them is judged elsewhere
    const CaseInputs in = make_inputs(c);
    const std::vector<double> wanted = mean_of_heads(reference::attention_weights(in.q, in.k, in.options));
    const AttentionResult plain = attention(in.q, in.k, in.v, in.options);
    for (const harness::Step& step : harness::steps()) {
      const harness::Scope scope(step);
      const WithMean got = run(in);
      EXPECT_LE(difference(got.mean, wanted), 1e-4) << step.name << " " << c.label();
      EXPECT_LE(difference(got.result.lse, numbers(plain.lse)), 1e-3) << step.name << " " << c.label();
      const double unit = c.dtype == DType::f32 ? 1e-4 : c.dtype == DType::f16 ? 1e-2 : 5e-2;
      EXPECT_LE(difference(got.result.o, numbers(plain.o)), unit) << step.name << " " << c.label();
    }
  }
}

void expect_bits_of_forward(const AttentionCase& c) {
  const CaseInputs in = make_inputs(c);
  const int before = threads();
  set_threads(1);
  const AttentionResult plain = attention(in.q, in.k, in.v, in.options);
  const WithMean alone = run(in);
  EXPECT_TRUE(same_bits(alone.result.o, plain.o)) << c.label();
  EXPECT_TRUE(same_bits(alone.result.lse, plain.lse)) << c.label();
  for (const int count : {2, 3, 7}) {
    set_threads(count);
    const WithMean got = run(in);
    EXPECT_TRUE(same_bits(got.mean, alone.mean) && same_bits(got.result.o, alone.result.o))
        << count << " " << c.label();
  }
  set_threads(before);
}

TEST(AttentionMean, HasTheBitsOfTheForwardPassForAnyNumberOfThreads) {
  AttentionCase c{.B = 2, .H = 4, .Hkv = 2, .Tq = 130, .Tk = 200, .Dk = 32, .Dv = 48, .masks = kMaskLengths};
  for (const harness::Step& step : harness::steps()) {
    const harness::Scope scope(step);
    for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
      c.dtype = dtype;
      expect_bits_of_forward(c);
    }
  }
}

// Keys of one head that fill more than a chunk, and of all heads more than are packed together.
TEST(AttentionMean, HasTheBitsOfTheForwardPassOverManyKeys) {
  expect_bits_of_forward(
      {.dtype = DType::bf16, .B = 2, .H = 6, .Hkv = 6, .Tq = 40, .Tk = 8300, .Dk = 64, .Dv = 64, .masks = kMaskCausal});
}

TEST(AttentionMean, DroppedKeysLeaveNothing) {
  const Tensor q = randn({1, 2, 50, 16}, 1), k = randn({1, 2, 80, 16}, 2), v = randn({1, 2, 80, 16}, 3);
  AttentionOptions options{.mask = lengths(tensor<int32_t>({70}, {1}))};
  const WithMean clean = run({q, k, v, {}, {}, options});
  k.slice(2, 70, 80).copy_from(full({1, 2, 10, 16}, std::numeric_limits<float>::quiet_NaN()));
  v.slice(2, 70, 80).copy_from(full({1, 2, 10, 16}, std::numeric_limits<float>::infinity()));
  const WithMean dirty = run({q, k, v, {}, {}, options});
  EXPECT_TRUE(same_bits(clean.mean, dirty.mean) && same_bits(clean.result.o, dirty.result.o));
  EXPECT_TRUE(same_bits(dirty.mean.slice(2, 70, 80).contiguous(), zeros({1, 50, 10})));
}

TEST(AttentionMean, RefusesBeforeAnythingIsWritten) {
  const Tensor q = randn({2, 4, 8, 16}, 1), k = randn({2, 2, 12, 16}, 2), v = randn({2, 2, 12, 16}, 3);
  const AttentionResult out{full({2, 4, 8, 16}, kPoison), full({2, 4, 8}, kPoison)};
  const auto refused = [&](const Tensor& mean, const AttentionCall& call) {
    return refusal([&] { attention_mean_into(mean, call); });
  };
  EXPECT_TRUE(contains(refused(empty({2, 8, 11}), {q, k, v, out}), "[2, 8, 11]"));
  EXPECT_TRUE(contains(refused(empty({2, 8, 12}, DType::bf16), {q, k, v, out}), "bf16"));
  EXPECT_TRUE(contains(refused({}, {q, k, v, out}), "mean has no memory"));
  EXPECT_TRUE(contains(refused(empty({2, 8, 12}), {q, k, {}, out}), "v has no memory"));
  EXPECT_TRUE(contains(refused(empty({2, 8, 12}), {q, k, v, {empty({2, 4, 8, 8}), {}}}), "[2, 4, 8, 8]"));
  const Tensor both = empty({2 * 8 * 12 + 2 * 4 * 8 * 16});
  const AttentionResult shared{both.slice(0, 100, 100 + 1024).reshape({2, 4, 8, 16}), {}};
  EXPECT_TRUE(contains(refused(both.slice(0, 0, 192).reshape({2, 8, 12}), {q, k, v, shared}), "shares memory"));
  EXPECT_TRUE(same_bits(out.o, full({2, 4, 8, 16}, kPoison)) && same_bits(out.lse, full({2, 4, 8}, kPoison)));
}

}  // namespace
}  // namespace mh
