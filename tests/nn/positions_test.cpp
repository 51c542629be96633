// How layers tell positions apart, by the formulas of the papers: sinusoids, rotation, ALiBi, T5's buckets.
#include "multihead/nn/positions.h"

#include <cmath>

#include "multihead/nn/multi_head_attention.h"
#include "tests/nn/golden.h"

namespace mh {
namespace {

// Vaswani et al., "Attention is all you need" (2017), 3.5.
TEST(Positions, SinusoidsAreThePapers) {
  const Tensor table = sinusoidal_positions(50, 6);
  for (const int64_t t : {0, 1, 7, 49}) {
    for (int64_t i = 0; i < 3; ++i) {
      const double angle = static_cast<double>(t) / std::pow(10000.0, 2.0 * static_cast<double>(i) / 6);
      EXPECT_NEAR(table.item({t, 2 * i}), std::sin(angle), 1e-6);
      EXPECT_NEAR(table.item({t, 2 * i + 1}), std::cos(angle), 1e-6);
    }
  }
}

AttentionOptions call_of(const LayerPositions& positions, int64_t heads, ParamStore& store) {
  const MultiHeadAttention layer(Params(store), {.model = 8 * heads, .heads = heads, .positions = positions});
  Pass pass = Pass::inference();
  return layer.call_options(pass, {});
}

// Press, Smith and Lewis, "Train short, test long" (2022): 1/2, 1/4 … 1/256 for 8 heads, and for 16 the same with the
// square roots of neighbours' products between them.
TEST(Positions, AlibiSlopesAreThePapers) {
  for (const int64_t heads : {8, 16}) {
    ParamStore store;
    const AttentionOptions options = call_of(Alibi{}, heads, store);
    ASSERT_EQ(options.bias.size(), 1u);
    const Tensor slopes = std::get<AlibiBias>(options.bias[0]).slopes;
    ASSERT_EQ(slopes.size(0), heads);
    for (int64_t h = 0; h < heads; ++h)
      EXPECT_NEAR(slopes.item({h}) * std::pow(2.0, static_cast<double>((h + 1) * 8) / static_cast<double>(heads)), 1,
                  1e-6);
    EXPECT_EQ(slopes.item({heads - 1}), 1.0 / 256);
  }
  ParamStore store;
  EXPECT_EQ(std::get<AlibiBias>(call_of(Alibi{}, 8, store).bias[0]).slopes.item({0}), 0.5);
}

// Su et al., "RoFormer" (2021): neighbours are turned together (GPT-J's way), or the two halves of a head (GPT-NeoX's).
TEST(Positions, RotaryTurnsThePairsItNames) {
  const int64_t width = 8;
  const Tensor hand_on = zeros({3 * width, width});
  for (int64_t i = 0; i < 3 * width; ++i) hand_on.data<float>()[i * width + i % width] = 1;
  for (const bool interleaved : {false, true}) {
    ParamStore store({{"in_proj_weight", hand_on}, {"out_proj.weight", zeros({width, width})}});
    const MultiHeadAttention layer(
        Params(store),
        {.model = width, .heads = 1, .bias = false, .positions = Rotary{.base = 100, .interleaved = interleaved}});
    const Tensor x = randn({3, width}, 1), positions = tensor<int32_t>({0, 2, 9}, {3});
    const Tensor q = layer.queries(x, positions), k = layer.keys_values(x, x, positions).k;
    for (int64_t r = 0; r < 3; ++r) {
      for (int64_t n = 0; n < width / 2; ++n) {
        const int64_t a = interleaved ? 2 * n : n, b = interleaved ? 2 * n + 1 : n + width / 2;
        const double angle =
            positions.item({r}) * std::pow(100.0, -2.0 * static_cast<double>(n) / static_cast<double>(width));
        const double first = x.item({r, a}) * std::cos(angle) - x.item({r, b}) * std::sin(angle);
        const double second = x.item({r, a}) * std::sin(angle) + x.item({r, b}) * std::cos(angle);
        for (const Tensor& turned : {q, k}) {
          EXPECT_NEAR(turned.item({r, 0, a}), first, 1e-5) << interleaved << " " << r << " " << n;
          EXPECT_NEAR(turned.item({r, 0, b}), second, 1e-5) << interleaved << " " << r << " " << n;
        }
      }
    }
  }
}

// Raffel et al., "Exploring the limits of transfer learning" (2020), as transformers' T5 counts: `distance` is key
// minus query.
int64_t t5_bucket(int64_t distance, bool bidirectional, int64_t buckets, int64_t max_distance) {
  int64_t first = 0, far = 0;
  if (bidirectional) {
    buckets /= 2;
    first = distance > 0 ? buckets : 0;
    far = std::abs(distance);
  } else {
    far = std::max<int64_t>(-distance, 0);
  }
  const int64_t exact = buckets / 2;
  if (far < exact) return first + far;
  const double share = std::log(static_cast<double>(far) / static_cast<double>(exact)) /
                       std::log(static_cast<double>(max_distance) / static_cast<double>(exact));
  return first + std::min(exact + static_cast<int64_t>(share * static_cast<double>(buckets - exact)), buckets - 1);
}

TEST(Positions, T5BucketsAreThoseOfItsPaper) {
  const int64_t length = 60, heads = 2;
  const Tensor q = randn({1, heads, length, 16}, 1), k = randn({1, heads, length, 16}, 2);
  for (const bool bidirectional : {false, true}) {
    for (const auto& [buckets, most] : {std::pair<int64_t, int64_t>{32, 128}, {8, 20}}) {
      ParamStore store;
      AttentionOptions options =
          call_of(T5Buckets{.buckets = buckets, .max_distance = most, .bidirectional = bidirectional}, heads, store);
      const Tensor table = randn({buckets, heads}, 5), dense = empty({heads, length, length});
      ASSERT_EQ(store.all().size(), 5u);
      for (const auto& param : store.all()) {
        if (param->name == "relative_bias") param->value.detach().copy_from(table);
      }
      for (int64_t i = 0; i < length; ++i) {
        for (int64_t j = 0; j < length; ++j) {
          for (int64_t h = 0; h < heads; ++h)
            dense.data<float>()[(h * length + i) * length + j] =
                static_cast<float>(table.item({t5_bucket(j - i, bidirectional, buckets, most), h}));
        }
      }
      const AttentionOptions expected{.bias = {DenseBias{dense}}};
      EXPECT_LT(test::error_against(attention(q, k, k, options).o, attention(q, k, k, expected).o), 1e-5)
          << bidirectional << " " << buckets;
    }
  }
}

}  // namespace
}  // namespace mh
