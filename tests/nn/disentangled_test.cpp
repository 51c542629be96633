// Scores by content and distance, beside the sum over pairs, and the buckets of distances.
#include "multihead/nn/disentangled.h"

#include <cmath>

#include "multihead/ops/elementwise.h"
#include "multihead/ops/rows/reduce.h"
#include "tests/nn/golden.h"

namespace mh {
namespace {

// By hand from ceil(log(d / 128) / log(511 / 128) · 127) + 128.
TEST(Disentangled, FarDistancesShareBuckets) {
  const Disentangled d{.buckets = 256, .max_distance = 512};
  for (const auto& [distance, bucket] :
       std::vector<std::pair<int64_t, int64_t>>{{0, 0}, {1, 1}, {128, 128}, {129, 129}, {200, 169}, {511, 255}})
    for (const int64_t sign : {1, -1}) EXPECT_EQ(distance_bucket(sign * distance, d), sign * bucket) << distance;
  EXPECT_EQ(distance_bucket(700, {.buckets = 0}), 700);
}

TEST(Disentangled, AddsBothProductsOfEachPair) {
  const Disentangled d{.buckets = 4, .max_distance = 8};
  const Sequences at = Sequences::of_lengths({5, 2});
  const Tensor q = randn({7, 2, 3}, 1), k = randn({7, 2, 3}, 2), pk = randn({8, 2, 3}, 3), pq = randn({8, 2, 3}, 4);
  const Tensor both = disentangled_bias({q, k, pk, pq}, at, d), content = disentangled_bias({q, k, pk, {}}, at, d);
  ASSERT_EQ(both.shape(), (Shape{2, 2, 5, 5}));
  const int64_t starts[] = {0, 5}, lengths[] = {5, 2};
  for (int64_t b = 0; b < 2; ++b) {
    for (int64_t h = 0; h < 2; ++h) {
      for (int64_t i = 0; i < lengths[b]; ++i) {
        for (int64_t j = 0; j < lengths[b]; ++j) {
          const int64_t row = std::clamp<int64_t>(distance_bucket(i - j, d) + 4, 0, 7);
          double first = 0, second = 0;
          for (int64_t c = 0; c < 3; ++c) {
            first += q.item({starts[b] + i, h, c}) * pk.item({row, h, c});
            second += k.item({starts[b] + j, h, c}) * pq.item({row, h, c});
          }
          EXPECT_NEAR(both.item({b, h, i, j}), (first + second) / 3, 1e-5);
          EXPECT_NEAR(content.item({b, h, i, j}), first / std::sqrt(6.0), 1e-5);
        }
      }
    }
  }
}

TEST(Disentangled, GradientsReachQueriesKeysAndTheTable) {
  const Sequences at = Sequences::of_lengths({3});
  const Tensor rows[] = {parameter(randn({3, 1, 2}, 1)), parameter(randn({3, 1, 2}, 2)), parameter(randn({4, 1, 2}, 3)),
                         parameter(randn({4, 1, 2}, 4))};
  const auto loss = [&] {
    return sum(square(disentangled_bias({rows[0], rows[1], rows[2], rows[3]}, at, {.buckets = 2, .max_distance = 4})));
  };
  Tape tape;
  const Gradients gradients = tape.backward(loss());
  for (const Tensor& each : rows) {
    const NoTape none;
    float* value = each.detach().data<float>();
    constexpr float kStep = 1e-2F;
    *value += kStep;
    const double above = loss().item({});
    *value -= 2 * kStep;
    const double below = loss().item({});
    *value += kStep;
    EXPECT_NEAR(gradients.of(each).item({0, 0, 0}), (above - below) / (2 * kStep), 1e-2);
  }
}

}  // namespace
}  // namespace mh
