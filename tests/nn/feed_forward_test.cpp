// What a layer computes besides attention, by its formulas: the middles of the feed-forward, and dropout at the end of
// every sublayer.
#include <functional>

#include "multihead/nn/blocks.h"
#include "tests/nn/golden.h"

namespace mh {
namespace {

constexpr int64_t kWidth = 64;

Tensor identity(int64_t size, float by = 1) {
  const Tensor out = zeros({size, size});
  for (int64_t i = 0; i < size; ++i) out.data<float>()[i * size + i] = by;
  return out;
}

// Numbers from -4 to 4: relu, both gelus and silu differ between them by 3e-4 and more.
Tensor ramp() {
  const Tensor x = empty({1, kWidth});
  for (int64_t i = 0; i < kWidth; ++i) x.data<float>()[i] = static_cast<float>(i - 32) / 8;
  return x;
}

struct Case {
  Middle middle;
  bool gated;
  std::function<double(double)> f;
};

double gelu(double x) { return x * 0.5 * std::erfc(-x / std::sqrt(2.0)); }

// Hendrycks and Gimpel, "Gaussian error linear units" (2016); Shazeer, "GLU variants improve Transformer" (2020).
const std::vector<Case> kCases{
    {Middle::relu, false, [](double x) { return x > 0 ? x : 0; }},
    {Middle::gelu, false, gelu},
    {Middle::gelu_tanh, false,
     [](double x) { return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))); }},
    {Middle::swiglu, true, [](double x) { return x / (1 + std::exp(-x)); }},
    {Middle::geglu, true, gelu},
};

// The first matrix hands x on, and beside it 2 · x to the gated ones; the second hands the middle on.
TEST(FeedForward, EachMiddleFollowsItsFormula) {
  for (const auto& [middle, gated, f] : kCases) {
    const Tensor first = zeros({gated ? 2 * kWidth : kWidth, kWidth});
    first.slice(0, 0, kWidth).copy_from(identity(kWidth));
    if (gated) first.slice(0, kWidth, 2 * kWidth).copy_from(identity(kWidth, 2));
    ParamStore store({{"linear1.weight", first}, {"linear2.weight", identity(kWidth)}});
    FeedForward layer(Params(store), {.width = kWidth, .feed_forward = kWidth, .middle = middle, .bias = false});
    const Tensor x = ramp(), residual = full({1, kWidth}, 10);
    for (const bool packed : {false, true}) {
      if (packed) layer.pack(DType::f32);
      Pass pass = Pass::inference();
      const Tensor y = layer.add_to(residual, x, pass);
      for (int64_t i = 0; i < kWidth; ++i) {
        const double at = x.item({0, i}), expected = 10 + f(at) * (gated ? 2 * at : 1);
        EXPECT_NEAR(y.item({0, i}), expected, 2e-5)
            << "middle " << static_cast<int>(middle) << " of " << at << (packed ? ", packed" : "");
      }
    }
  }
}

// With every matrix 0, a sublayer gives the bias it ends with; that of one is 1, and the others' 0. What its dropout
// leaves of the ones is 0 or 1 / (1 - p).
void expect_dropped(const Tensor& y, const std::string& which) {
  int64_t kept = 0;
  for (int64_t i = 0; i < y.count(); ++i) {
    const float value = y.data<float>()[i];
    ASSERT_TRUE(value == 0 || value == 2) << which << ": " << value;
    kept += value != 0;
  }
  // Half of 2048, give or take five standard deviations.
  EXPECT_NEAR(static_cast<double>(kept), 1024, 113) << which;
}

void clear(const ParamStore& store, const std::string& ones) {
  for (const auto& param : store.all())
    param->value.detach().copy_from(full(param->value.shape(), param->name == ones ? 1 : 0));
}

const BlockOptions kDropping{.width = kWidth, .heads = 2, .feed_forward = 8, .dropout = 0.5F};

TEST(EncoderLayer, DropsAtTheEndOfEachSublayerInTrainingAlone) {
  ParamStore store;
  const EncoderLayer layer(Params(store), kDropping);
  const Tensor x = zeros({32, kWidth});
  const Sequences at = Sequences::of_lengths({20, 12});
  for (const std::string ones : {"self_attn.out_proj.bias", "linear2.bias"}) {
    clear(store, ones);
    for (const bool taped : {false, true}) {
      std::optional<Tape> tape;
      if (taped) tape.emplace();
      Pass training = Pass::training(3), inference = Pass::inference();
      expect_dropped(layer(x, at, training), ones);
      EXPECT_EQ(test::error_against(layer(x, at, inference), full({32, kWidth}, 1)), 0) << ones;
    }
  }
}

TEST(DecoderLayer, DropsAtTheEndOfEachSublayerInTrainingAlone) {
  ParamStore store;
  const DecoderLayer layer(Params(store), kDropping);
  const Tensor x = zeros({32, kWidth});
  const Sequences at = Sequences::of_lengths({20, 12}), memory_at = Sequences::of_lengths({3, 2});
  const EncoderOutput memory{randn({5, kWidth}, 1), memory_at};
  for (const std::string ones : {"self_attn.out_proj.bias", "multihead_attn.out_proj.bias", "linear2.bias"}) {
    clear(store, ones);
    Pass training = Pass::training(3), inference = Pass::inference();
    expect_dropped(layer(x, at, memory, training), ones);
    EXPECT_EQ(test::error_against(layer(x, at, memory, inference), full({32, kWidth}, 1)), 0) << ones;
  }
}

}  // namespace
}  // namespace mh
