// Recomputation: what is kept between the passes, what is held at once on the way back, and that gradients are the
// same.
#include "multihead/autograd/recompute.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "multihead/ops/elementwise.h"
#include "multihead/ops/shape.h"
#include "multihead/tensor/memory_cache.h"

namespace mh {
namespace {

constexpr int64_t kElements = 1 << 18, kBytes = kElements * 4;
constexpr int kParts = 6, kOps = 8;

int64_t bytes_held() { return memory_use().in_use; }

struct Measured {
  int64_t kept = 0;  // between forward and backward, beyond what there was before
  int64_t most = 0;  // at the end of any part, forward or backward
  Tensor gradient{};
};

// kParts parts in a row, each of kOps ops that keep a tensor of kBytes.
Measured measured_run(bool again) {
  const Tensor start = parameter(randn({kElements}, 1)), factor = parameter(full({kElements}, 0.9));
  Measured out;
  const int64_t before = bytes_held();
  const auto part = [&](const std::vector<Tensor>& in) {
    Tensor x = in[0];
    for (int n = 0; n < kOps; ++n) x = mul(x, factor);
    out.most = std::max(out.most, bytes_held() - before);
    return x;
  };
  Tape tape;
  Tensor x = start;
  for (int n = 0; n < kParts; ++n) x = again ? recompute({x}, {factor}, part) : part({x});
  out.kept = bytes_held() - before;
  Gradients sums;
  tape.backward({x}, {full({kElements}, 1)}, sums);
  out.gradient = sums.of(factor);
  return out;
}

TEST(Recompute, KeepsTheInputsAloneAndTheTapeOfOnePart) {
  const Tensor counted = zeros({kElements});
  if (bytes_held() < kBytes) GTEST_SKIP() << "under a sanitizer tensors are not counted";
  const Measured plain = measured_run(false), again = measured_run(true);
  EXPECT_GT(plain.kept, (kParts * kOps - 2) * kBytes);
  EXPECT_LT(again.kept, (kParts + 1) * kBytes);
  // The inputs of all parts, the tape of one, and the gradients on the way.
  EXPECT_LT(again.most, (kParts + kOps + 4) * kBytes);
  EXPECT_GT(again.most, kOps * kBytes) << "the part was run again";
  for (int64_t i = 0; i < kElements; i += 1009)  // sums of parts and a sum of all differ by roundings
    EXPECT_NEAR(again.gradient.item({i}), plain.gradient.item({i}), 1e-5 * (1 + std::abs(plain.gradient.item({i}))));
}

TEST(Recompute, RunsAgainOnlyWhereAGradientIsWanted) {
  int runs = 0;
  const auto f = [&](const std::vector<Tensor>& in) {
    ++runs;
    return scale(in[0], 3);
  };
  const Tensor x = full({2}, 1);
  {
    Tape tape;
    EXPECT_EQ(recompute({x}, {}, f).trace(), 0u);
    EXPECT_EQ(tape.size(), 0u);
  }
  EXPECT_EQ(runs, 1);
  const Tensor w = parameter(x);
  Tape tape;
  const Tensor y = recompute({w}, {}, f);
  EXPECT_EQ(tape.size(), 1u);
  Gradients sums;
  tape.backward({y}, {full({2}, 1)}, sums);
  EXPECT_EQ(sums.of(w).item({0}), 3);
  EXPECT_EQ(runs, 3);
}

TEST(Recompute, RefusesASecondRunOfAnotherShape) {
  int runs = 0;
  const Tensor w = parameter(full({4}, 1));
  Tape tape;
  const Tensor y = recompute({w}, {}, [&](const std::vector<Tensor>& in) {
    return reshape(in[0], ++runs == 1 ? Shape{4, 1} : Shape{2, 2});
  });
  Gradients sums;
  EXPECT_THROW(tape.backward({y}, {full({4, 1}, 1)}, sums), Error);
}

}  // namespace
}  // namespace mh
