// What recurrent layers promise besides their formula: a sequence's bits alone and in a batch, bf16, packed weights,
// refusals.
#include "multihead/ops/recurrent.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "multihead/autograd/tape.h"
#include "tests/harness/refusal.h"

namespace mh {
namespace {

constexpr int64_t kWidth = 19;

struct Layer {
  Cell cell;
  Tensor w, bias;

  explicit Layer(Cell of)
      : cell(of),
        w(randn({kGates[static_cast<size_t>(of)] * kWidth, kWidth}, 1)),
        bias(randn({kGates[static_cast<size_t>(of)] * kWidth}, 2)) {
    for (int64_t i = 0; i < w.count(); ++i) w.data<float>()[i] *= 0.2F;
  }
  Tensor rows(int64_t count) const { return randn({count, w.size(0)}, 3); }
};

Tensor starts_at(const std::vector<int32_t>& at) { return tensor<int32_t>(at, {static_cast<int64_t>(at.size())}); }

bool same_bytes(const Tensor& a, const Tensor& b) {
  const Tensor x = a.contiguous(), y = b.contiguous();
  return x.shape() == y.shape() && std::memcmp(x.view().data, y.view().data, static_cast<size_t>(x.count()) * 4) == 0;
}

const Cell kCells[] = {Cell::tanh, Cell::relu, Cell::lstm, Cell::gru};

TEST(Recurrent, SequenceHasTheSameBitsAloneAndInABatch) {
  for (const Cell cell : kCells) {
    const Layer layer(cell);
    const Tensor x = layer.rows(60);
    for (const bool reverse : {false, true}) {
      const RecurrentOptions options{.cell = cell, .reverse = reverse};
      const RecurrentResult all = recurrent(x, starts_at({0, 9, 9, 50, 57, 60}), {layer.w, layer.bias}, options);
      const RecurrentResult one = recurrent(x.slice(0, 50, 57), starts_at({0, 7}), {layer.w, layer.bias}, options);
      EXPECT_TRUE(same_bytes(all.y.slice(0, 50, 57), one.y)) << static_cast<int>(cell);
      EXPECT_TRUE(same_bytes(all.end.h.slice(0, 3, 4), one.end.h)) << static_cast<int>(cell);
    }
  }
}

TEST(Recurrent, KeptStateContinuesWithTheSameBits) {
  for (const Cell cell : kCells) {
    const Layer layer(cell);
    const Tensor x = layer.rows(8);
    const RecurrentResult all = recurrent(x, starts_at({0, 8}), {layer.w, layer.bias}, {.cell = cell});
    const RecurrentResult first = recurrent(x.slice(0, 0, 5), starts_at({0, 5}), {layer.w, layer.bias}, {.cell = cell});
    const RecurrentResult then =
        recurrent(x.slice(0, 5, 8), starts_at({0, 3}), {layer.w, layer.bias}, {.cell = cell, .start = first.end});
    EXPECT_TRUE(same_bytes(all.y.slice(0, 5, 8), then.y)) << static_cast<int>(cell);
    EXPECT_TRUE(same_bytes(all.end.h, then.end.h)) << static_cast<int>(cell);
  }
}

TEST(Recurrent, PackedWeightsAndRecordingGiveTheSameBits) {
  for (const Cell cell : kCells) {
    const Layer layer(cell);
    const Tensor x = layer.rows(11), starts = starts_at({0, 4, 11});
    const RecurrentResult plain = recurrent(x, starts, {layer.w, layer.bias}, {.cell = cell});
    const RecurrentResult packed = recurrent(
        x, starts, {.w = layer.w, .bias = layer.bias, .packed = prepack(layer.w.transpose(0, 1))}, {.cell = cell});
    EXPECT_TRUE(same_bytes(plain.y, packed.y));
    Tape tape;
    const RecurrentResult recorded = recurrent(parameter(x), starts, {layer.w, layer.bias}, {.cell = cell});
    EXPECT_TRUE(same_bytes(plain.y, recorded.y));
  }
}

TEST(Recurrent, SequenceWithoutRowsEndsWhereItStarts) {
  const Layer layer(Cell::lstm);
  const RecurrentState start{randn({2, kWidth}, 5), randn({2, kWidth}, 6)};
  const RecurrentResult out =
      recurrent(layer.rows(3), starts_at({0, 0, 3}), {layer.w, layer.bias}, {.cell = Cell::lstm, .start = start});
  EXPECT_TRUE(same_bytes(out.end.h.slice(0, 0, 1), start.h.slice(0, 0, 1)));
  EXPECT_TRUE(same_bytes(out.end.c.slice(0, 0, 1), start.c.slice(0, 0, 1)));
}

// A step's products see the state and the weights in 8 bits of mantissa; |h| <= 1 bounds the rest.
TEST(Recurrent, Bf16ProductsStayWithinTheirRounding) {
  for (const Cell cell : {Cell::tanh, Cell::lstm, Cell::gru}) {
    Layer layer(cell);
    layer.w = layer.w.to(DType::bf16).to(DType::f32);
    const Tensor starts = starts_at({0, 6, 10});
    const auto gradients = [&](const Tensor& copy, Tensor& y) {
      Tape tape;
      const Tensor x = parameter(layer.rows(10)), w = parameter(layer.w);
      const RecurrentResult out = recurrent(x, starts, {.w = w, .bias = layer.bias, .copy = copy}, {.cell = cell});
      y = out.y.detach();
      Gradients sums;
      tape.backward({out.y}, {full(out.y.shape(), 1)}, sums);
      return std::vector<Tensor>{sums.find(x), sums.find(w)};
    };
    Tensor exact_y, y;
    const auto exact = gradients({}, exact_y), rounded = gradients(layer.w.to(DType::bf16), y);
    const auto furthest = [](const Tensor& a, const Tensor& b) {
      double far = 0, largest = 0;
      for (int64_t i = 0; i < a.count(); ++i) {
        far = std::max(far, std::abs(static_cast<double>(a.data<float>()[i] - b.data<float>()[i])));
        largest = std::max(largest, std::abs(static_cast<double>(a.data<float>()[i])));
      }
      return far / largest;
    };
    EXPECT_LT(furthest(exact_y, y), 0.02);
    EXPECT_GT(furthest(exact_y, y), 0);
    EXPECT_LT(furthest(exact[0], rounded[0]), 0.05);
    EXPECT_LT(furthest(exact[1], rounded[1]), 0.05);
  }
}

TEST(Recurrent, RefusesWhatDoesNotFit) {
  const Layer layer(Cell::gru);
  const RecurrentWeights weights{layer.w, layer.bias};
  const auto sentence = [&](const Tensor& x, const Tensor& starts, const RecurrentWeights& w,
                            const RecurrentOptions& o) {
    return refusal_of([&] { recurrent(x, starts, w, o); }).sentence;
  };
  const Tensor x = layer.rows(4), starts = starts_at({0, 4});
  EXPECT_TRUE(sentence(x, starts, weights, {.cell = Cell::lstm}).starts_with("recurrent: the rows of x do not fit w"));
  EXPECT_NE(sentence(x, starts_at({0, 3}), weights, {.cell = Cell::gru}).find("runs from 0 to 3"), std::string::npos);
  EXPECT_NE(sentence(x, starts_at({0, 5, 2, 4}), weights, {.cell = Cell::gru}).find("falls from 5 to 2"),
            std::string::npos);
  EXPECT_NE(
      sentence(x, starts, weights, {.cell = Cell::gru, .start = {randn({2, kWidth}, 1), {}}}).find("the start is"),
      std::string::npos);
  EXPECT_NE(sentence(x, starts, weights, {.cell = Cell::gru, .start = {{}, randn({1, kWidth}, 1)}}).find("has a c"),
            std::string::npos);
  EXPECT_NE(sentence(x.to(DType::bf16), starts, weights, {.cell = Cell::gru}).find("expected f32"), std::string::npos);
  EXPECT_NE(sentence(x, starts, {layer.w, randn({3}, 1)}, {.cell = Cell::gru}).find("bias is [3]"), std::string::npos);
  EXPECT_NE(refusal_of([&] {
              additive_scores(randn({2, 4}, 1), randn({5, 4}, 2), randn({4}, 3), starts_at({0, 5}));
            }).sentence.find("additive_scores: starts"),
            std::string::npos);
}

}  // namespace
}  // namespace mh
