// Losses made of ops against their formulas in double precision, and their gradients against finite differences.
#include "multihead/tasks/losses.h"

#include <gtest/gtest.h>

#include <cmath>

#include "multihead/autograd/tape.h"
#include "multihead/base/random.h"
#include "multihead/ops/rows/cross_entropy.h"
#include "tests/harness/refusal.h"

namespace mh {
namespace {

Tensor random_table(int64_t rows, int64_t columns, uint64_t seed, double low, double high) {
  Random random(seed);
  const Tensor out = empty({rows, columns});
  for (int64_t n = 0; n < out.count(); ++n)
    out.data<float>()[n] = static_cast<float>(low + (high - low) * random.uniform());
  return out;
}

TEST(SoftCrossEntropy, ValueAndGradientAreThoseOfTheFormula) {
  const int64_t rows = 5, classes = 7;
  const Tensor logits = parameter(random_table(rows, classes, 1, -60, 60)), t = random_table(rows, classes, 2, 0, 1);
  Tape tape;
  const Tensor loss = soft_cross_entropy(logits, t);
  const Tensor gradient = tape.backward(loss).of(logits);
  double wanted = 0;
  for (int64_t r = 0; r < rows; ++r) {
    double sum = 0, weight = 0;
    for (int64_t c = 0; c < classes; ++c) sum += std::exp(logits.item({r, c}));
    for (int64_t c = 0; c < classes; ++c) {
      wanted += t.item({r, c}) * (std::log(sum) - logits.item({r, c}));
      weight += t.item({r, c});
    }
    for (int64_t c = 0; c < classes; ++c)
      EXPECT_NEAR(gradient.item({r, c}), std::exp(logits.item({r, c})) / sum * weight - t.item({r, c}), 1e-5);
  }
  EXPECT_NEAR(loss.item({}), wanted, 1e-5 * wanted);
}

TEST(SoftCrossEntropy, OfOneClassARowIsTheCrossEntropy) {
  const Tensor logits = random_table(2, 3, 3, -2, 2), t = zeros({2, 3});
  t.data<float>()[1] = t.data<float>()[3] = 0.5F;
  EXPECT_NEAR(soft_cross_entropy(logits, t).item({}), cross_entropy(logits, tensor<int32_t>({1, 0}, {2})).loss.item({}),
              1e-6);
  EXPECT_TRUE(refusal_of([&] { soft_cross_entropy(logits, zeros({3, 2})); }).says("[2, 3] and [3, 2]"));
}

}  // namespace
}  // namespace mh
