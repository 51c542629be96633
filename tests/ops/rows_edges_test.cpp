// What the ops on rows do at the edges: NaN, infinities, nothing to do, rows among others.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "multihead/multihead.h"
#include "tests/harness/rungs.h"
#include "tests/ops/compare.h"

namespace mh {
namespace {

using test::numbers;
using test::same_bits;

constexpr float kInf = std::numeric_limits<float>::infinity(), kNan = std::numeric_limits<float>::quiet_NaN();

template <class Body>
void on_every_rung(const Body& body) {
  for (const harness::Step& step : harness::steps()) {
    const harness::Scope scope(step);
    SCOPED_TRACE(step.name);
    body();
  }
}

// Every op from rows to rows.
std::vector<std::pair<const char*, std::function<Tensor(const Tensor&)>>> row_ops() {
  const auto acting = [](Activation kind) { return [kind](const Tensor& x) { return activation(x, kind); }; };
  return {{"layer_norm", [](const Tensor& x) { return layer_norm(x, {}, {}); }},
          {"rms_norm", [](const Tensor& x) { return rms_norm(x, {}); }},
          {"softmax", [](const Tensor& x) { return softmax(x); }},
          {"log_softmax", [](const Tensor& x) { return log_softmax(x); }},
          {"log_sum_exp", [](const Tensor& x) { return log_sum_exp(x); }},
          {"relu", acting(Activation::relu)},
          {"gelu", acting(Activation::gelu)},
          {"gelu_tanh", acting(Activation::gelu_tanh)},
          {"silu", acting(Activation::silu)},
          {"sigmoid", acting(Activation::sigmoid)},
          {"tanh", acting(Activation::tanh)},
          {"quick_gelu", acting(Activation::quick_gelu)},
          {"swiglu", [](const Tensor& x) { return swiglu(x); }},
          {"exp", [](const Tensor& x) { return exp(x); }},
          {"log", [](const Tensor& x) { return log(x); }},
          {"max", [](const Tensor& x) { return max(x, {.axes = {-1}}); }},
          {"sum", [](const Tensor& x) { return sum(x, {.axes = {-1}}); }}};
}

// Whether row r of y, or element r where y has no columns, holds NaN.
bool has_nan(const Tensor& y, int64_t r) {
  for (const double each : numbers(y.select(0, r))) {
    if (std::isnan(each)) return true;
  }
  return false;
}

TEST(RowsEdges, NaNStaysInItsRowAndIsNotLost) {
  on_every_rung([] {
    for (const DType type : {DType::f32, DType::bf16, DType::f16}) {
      for (const auto& [name, op] : row_ops()) {
        for (const int64_t column : {0, 5, 17, 39}) {
          Tensor x = randn(Shape{3, 40}, 1, type);
          x.select(0, 1).select(0, column).copy_from(full(Shape{}, kNan, type));
          const Tensor y = op(x);
          EXPECT_TRUE(has_nan(y, 1)) << name;
          const Tensor clean = op(randn(Shape{3, 40}, 1, type));
          for (const int64_t other : {0, 2}) EXPECT_TRUE(same_bits(y.select(0, other), clean.select(0, other))) << name;
        }
      }
    }
  });
}

TEST(RowsEdges, GradientsKeepNaNToo) {
  on_every_rung([] {
    for (const auto& [name, op] : row_ops()) {
      const Tensor raw = randn(Shape{2, 20}, 1);
      raw.data<float>()[7] = kNan;
      const Tensor x = parameter(raw);
      Tape tape;
      const Tensor y = op(x);
      Gradients sums;
      tape.backward({y}, {full(y.shape(), 1, y.dtype())}, sums);
      if (std::string(name) == "sum") continue;  // its derivative does not depend on x
      EXPECT_TRUE(has_nan(sums.of(x), 0)) << name;
    }
  });
}

TEST(RowsEdges, ARowHasTheSameBitsAloneAndAmongOthers) {
  on_every_rung([] {
    for (const DType type : {DType::f32, DType::bf16}) {
      const Tensor x = randn(Shape{200, 72}, 4, type);
      for (const auto& [name, op] : row_ops()) {
        const Tensor all = op(x);
        for (const int64_t row : {0, 63, 199})
          EXPECT_TRUE(same_bits(op(x.slice(0, row, row + 1)), all.slice(0, row, row + 1))) << name << " row " << row;
      }
    }
  });
}

TEST(RowsEdges, SoftmaxOfInfinities) {
  on_every_rung([] {
    const Tensor y = softmax(tensor<float>({-kInf, 1, -kInf, 1, -kInf, -kInf, -kInf, -kInf}, Shape{2, 4}));
    EXPECT_TRUE(same_bits(y.select(0, 0), tensor<float>({0, 0.5f, 0, 0.5f}, Shape{4})));
    for (const double each : numbers(y.select(0, 1))) EXPECT_TRUE(std::isnan(each));
    EXPECT_EQ(log_sum_exp(tensor<float>({-kInf, -kInf}, Shape{1, 2})).item({0}), -kInf);
    EXPECT_EQ(log_sum_exp(empty(Shape{1, 0})).item({0}), -kInf);
    // Nothing overflows: e^1000 is past f32.
    EXPECT_TRUE(
        same_bits(softmax(tensor<float>({1000, 1000, -1000}, Shape{3})), tensor<float>({0.5f, 0.5f, 0}, Shape{3})));
  });
}

TEST(RowsEdges, ActivationsOfInfinities) {
  on_every_rung([] {
    const Tensor x = tensor<float>({kInf, -kInf, 0, 3e38f, -3e38f}, Shape{5});
    EXPECT_TRUE(same_bits(activation(x, Activation::silu), tensor<float>({kInf, 0, 0, 3e38f, 0}, Shape{5})));
    EXPECT_TRUE(same_bits(activation(x, Activation::sigmoid), tensor<float>({1, 0, 0.5f, 1, 0}, Shape{5})));
    EXPECT_TRUE(same_bits(activation(x, Activation::tanh), tensor<float>({1, -1, 0, 1, -1}, Shape{5})));
    for (const Activation kind : {Activation::relu, Activation::gelu, Activation::gelu_tanh, Activation::silu}) {
      const Tensor p = parameter(x);
      Tape tape;
      Gradients sums;
      tape.backward({activation(p, kind)}, {full(Shape{5}, 1)}, sums);
      const std::vector<double> d = numbers(sums.of(p));
      EXPECT_EQ(d[0], 1);
      EXPECT_EQ(d[1], 0);
      EXPECT_EQ(d[2], kind == Activation::relu ? 0 : 0.5);
      EXPECT_EQ(d[3], 1);
      EXPECT_EQ(d[4], 0);
    }
  });
}

TEST(RowsEdges, ExpAndLogOverTheirWholeRange) {
  on_every_rung([] {
    std::vector<float> x{-kInf, -200, -87, -1e-6f, 0, 1e-6f, 1, 88, 88.7f, 89, kInf};
    const Tensor y = exp(tensor<float>(x, Shape{static_cast<int64_t>(x.size())}));
    for (size_t n = 0; n < x.size(); ++n) {
      const double wanted = static_cast<double>(std::exp(x[n])), got = y.item({static_cast<int64_t>(n)});
      if (std::isinf(wanted))
        EXPECT_EQ(got, wanted);
      else
        EXPECT_NEAR(got, wanted, 2 * 0x1p-23 * wanted) << x[n];
    }
    x = {-1, -0.0f, 0, 1e-44f, 1e-38f, 0.1f, 0.999999f, 1, 1.000001f, 3, 3e38f, kInf};
    const Tensor z = log(tensor<float>(x, Shape{static_cast<int64_t>(x.size())}));
    for (size_t n = 0; n < x.size(); ++n) {
      const double wanted = std::log(static_cast<double>(x[n])), got = z.item({static_cast<int64_t>(n)});
      if (std::isnan(wanted))
        EXPECT_TRUE(std::isnan(got));
      else if (std::isinf(wanted))
        EXPECT_EQ(got, wanted);
      else
        EXPECT_NEAR(got, wanted, 2 * 0x1p-23 * std::abs(wanted)) << x[n];
    }
  });
}

TEST(RowsEdges, IgnoredRowsDoNotCountWhateverTheyHold) {
  on_every_rung([] {
    const Tensor clean = randn(Shape{4, 33}, 1), dirty = clean.clone(),
                 targets = tensor<int32_t>({3, -1, 32, -1}, Shape{4});
    for (const int64_t row : {1, 3}) dirty.select(0, row).copy_from(full(Shape{33}, kNan));
    const auto run = [&](const Tensor& logits) {
      const Tensor x = parameter(logits);
      Tape tape;
      const CrossEntropy out = cross_entropy(x, targets, {.smoothing = 0.1f});
      EXPECT_EQ(out.counted, 2);
      EXPECT_EQ(out.nll.trace(), 0u);
      return std::tuple{out.loss.detach(), out.nll, tape.backward(out.loss).of(x)};
    };
    const auto a = run(clean), b = run(dirty);
    EXPECT_TRUE(same_bits(std::get<0>(a), std::get<0>(b)) && same_bits(std::get<1>(a), std::get<1>(b)));
    EXPECT_TRUE(same_bits(std::get<2>(a), std::get<2>(b)));
    for (const double each : numbers(std::get<2>(b).select(0, 1))) EXPECT_EQ(each, 0);
  });
}

TEST(RowsEdges, CrossEntropyOfNothingIsZero) {
  const Tensor x = parameter(full(Shape{2, 5}, kNan)), none = full(Shape{2}, -1, DType::i32),
               w = parameter(randn(Shape{7, 5}, 1));
  Tape tape;
  const CrossEntropy out = cross_entropy(x, none), linear = linear_cross_entropy(x, w, none);
  EXPECT_EQ(out.loss.item({}), 0);
  EXPECT_EQ(linear.loss.item({}), 0);
  EXPECT_EQ(out.counted + linear.counted, 0);
  const Gradients sums = tape.backward(add(out.loss, linear.loss));
  for (const double each : numbers(sums.of(x))) EXPECT_EQ(each, 0);
  for (const double each : numbers(sums.of(w))) EXPECT_EQ(each, 0);
}

TEST(RowsEdges, LinearCrossEntropyIsThatOfItsLogits) {
  on_every_rung([] {
    const Tensor x = parameter(randn(Shape{9, 40}, 1)), w = parameter(randn(Shape{50, 40}, 2));
    const Tensor targets = tensor<int32_t>({0, 1, -1, 49, 7, -1, 9, 3, 3}, Shape{9});
    Tape tape;
    const CrossEntropy whole = cross_entropy(linear(x, w), targets), chunked = linear_cross_entropy(x, w, targets);
    EXPECT_TRUE(same_bits(whole.loss, chunked.loss));
    EXPECT_TRUE(same_bits(whole.nll, chunked.nll));
    EXPECT_EQ(whole.counted, chunked.counted);
    // A gradient of the loss other than 1 scales both.
    const Gradients three = tape.backward(scale(chunked.loss, 3));
    Tape again;
    const Gradients one = again.backward(linear_cross_entropy(x, w, targets).loss);
    for (const Tensor& each : {x, w}) EXPECT_LT(test::relative_error(three.of(each), scale(one.of(each), 3)), 1e-6);
  });
}

TEST(RowsEdges, DropoutThatDropsNothingCostsNothing) {
  const Tensor x = randn(Shape{3, 5}, 1), residual = randn(Shape{3, 5}, 2);
  EXPECT_EQ(dropout(x, {.p = 0}).view().data, x.view().data);
  EXPECT_TRUE(same_bits(dropout_add(x, residual, {.p = 0}), add(x, residual)));
}

TEST(RowsEdges, DropoutKeepsTheShareItSays) {
  const Tensor x = full(Shape{400, 500}, 1);
  const Tensor y = dropout(x, {.p = 0.3f, .seed = 11});
  double kept = 0, sum = 0;
  for (const double each : numbers(y)) {
    kept += each != 0;
    sum += each;
  }
  // 200,000 draws: one standard deviation of the share is 0.001.
  EXPECT_NEAR(kept / 200000, 0.7, 0.005);
  EXPECT_NEAR(sum / 200000, 1, 0.008);
  EXPECT_FALSE(same_bits(y, dropout(x, {.p = 0.3f, .seed = 12})));
}

TEST(RowsEdges, MaximumAndItsTies) {
  const Tensor a = parameter(tensor<float>({1, 2, kNan, 4}, Shape{4})),
               b = parameter(tensor<float>({1, 3, 0, kNan}, Shape{4}));
  Tape tape;
  const Tensor y = maximum(a, b);
  const std::vector<double> v = numbers(y.detach());
  EXPECT_TRUE(v[0] == 1 && v[1] == 3 && std::isnan(v[2]) && std::isnan(v[3]));
  Gradients sums;
  tape.backward({y}, {full(Shape{4}, 1)}, sums);
  EXPECT_EQ(sums.of(a).item({0}), 0.5);
  EXPECT_EQ(sums.of(b).item({0}), 0.5);
  EXPECT_EQ(sums.of(a).item({1}), 0);
}

TEST(RowsEdges, ReductionsOverNothing) {
  const Tensor x = empty(Shape{2, 0, 3});
  EXPECT_TRUE(same_bits(sum(x, {.axes = {1}}), zeros(Shape{2, 3})));
  EXPECT_TRUE(same_bits(max(x, {.axes = {1}}), full(Shape{2, 3}, -kInf)));
  for (const double each : numbers(mean(x, {.axes = {1}}))) EXPECT_TRUE(std::isnan(each));
  EXPECT_EQ(sum(x).item({}), 0);
  EXPECT_EQ(sum(full(Shape{2, 3, 4}, 1), {.axes = {0, 2}, .keep = true}).shape(), (Shape{1, 3, 1}));
}

}  // namespace
}  // namespace mh
