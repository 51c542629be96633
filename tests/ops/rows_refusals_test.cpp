// What the ops on rows refuse, and with which sentence.
#include <gtest/gtest.h>

#include "multihead/multihead.h"
#include "multihead/ops/update.h"
#include "tests/ops/compare.h"

namespace mh {
namespace {

using test::contains;
using test::refusal;

TEST(RowsRefusals, NameTheOpAndTheShapes) {
  const Tensor x = zeros(Shape{2, 5}), whole = zeros(Shape{2, 5}, DType::i32);
  EXPECT_EQ(refusal([&] { layer_norm(zeros(Shape{}), {}, {}); }), "layer_norm: x is a scalar; expected rank 1 or more");
  EXPECT_EQ(refusal([&] { layer_norm(x, zeros(Shape{4}), {}); }),
            "layer_norm: gamma does not fit the last axis of x; expected [5]; gamma is [4], x is [2, 5]");
  EXPECT_EQ(refusal([&] { rms_norm(x, zeros(Shape{5}, DType::bf16)); }),
            "rms_norm: gamma has elements of type bf16; expected f32");
  EXPECT_EQ(refusal([&] { layer_norm(x, {}, {}, {.result = DType::f16}); }),
            "layer_norm: elements of type f32 do not become f16; expected f32 and bf16, or one type for both");
  EXPECT_EQ(refusal([&] { layer_norm(x, {}, {}, {.eps = -1}); }), "layer_norm: eps is -1; expected 0 or more");
  EXPECT_EQ(refusal([&] { softmax(whole); }), "softmax: x has elements of type i32; expected f32, bf16 or f16");
  EXPECT_EQ(refusal([&] { top_k(x, 6); }),
            "top_k: k is 6; expected 1 to 5, the smaller of the last axis and 64; x is [2, 5]");
  EXPECT_EQ(refusal([&] { activation(whole, Activation::relu); }),
            "activation: x has elements of type i32; expected f32, bf16 or f16");
  EXPECT_EQ(refusal([&] { swiglu(x); }), "gated: the last axis of x has 5 elements; expected two halves; x is [2, 5]");
  EXPECT_EQ(refusal([&] { dropout(x, {.p = 1.5f}); }), "dropout: p is 1.5; expected 0 to 1");
  EXPECT_EQ(refusal([&] { dropout(x, {.p = NAN}); }), "dropout: p is nan; expected 0 to 1");
  EXPECT_EQ(refusal([&] {
              dropout_add(x, zeros(Shape{5, 2}), {});
            }),
            "dropout_add: x and residual differ in shape; x is [2, 5], residual is [5, 2]");
}

TEST(RowsRefusals, NumbersOutsideTheirTable) {
  const Tensor table = zeros(Shape{4, 3}), logits = zeros(Shape{2, 3});
  const auto numbers = [](std::vector<int32_t> of) {
    return tensor<int32_t>(of, Shape{static_cast<int64_t>(of.size())});
  };
  EXPECT_EQ(refusal([&] {
              embedding(table, numbers({0, 4}));
            }),
            "embedding: element 1 of ids is 4; expected 0 or more and below 4; ids is [2]");
  EXPECT_EQ(refusal([&] { embedding(table, numbers({-1})); }),
            "embedding: element 0 of ids is -1; expected 0 or more and below 4; ids is [1]");
  EXPECT_TRUE(contains(refusal([&] {
                         embedding(table, numbers({0, 1, 2}), {.positions = zeros(Shape{2, 3})});
                       }),
                       "embedding: element 2 of position_ids is 2; expected 0 or more and below 2"));
  EXPECT_TRUE(contains(refusal([&] {
                         embedding(table, numbers({0}), {.positions = zeros(Shape{2, 4})});
                       }),
                       "positions does not fit the table; expected [T, 3] of f32; positions is [2, 4] of f32"));
  EXPECT_EQ(refusal([&] { embedding(table, zeros(Shape{2})); }),
            "embedding: ids has elements of type f32; expected i32");
  EXPECT_EQ(refusal([&] { gather(table, numbers({9})); }),
            "gather: element 0 of ids is 9; expected 0 or more and below 4; ids is [1]");
  EXPECT_EQ(refusal([&] {
              cross_entropy(logits, numbers({0, 3}));
            }),
            "cross_entropy: target 3 of row 1 is not a class; expected 0 to 2, or -1 for none");
  EXPECT_EQ(refusal([&] { cross_entropy(logits, numbers({0})); }),
            "cross_entropy: targets does not fit logits; expected one for each row; logits is [2, 3], targets is [1]");
  EXPECT_EQ(refusal([&] {
              cross_entropy(logits, numbers({0, 1}), {.smoothing = 2});
            }),
            "cross_entropy: smoothing is 2; expected 0 to 1");
}

TEST(RowsRefusals, ElementwiseAndShapes) {
  const Tensor x = zeros(Shape{2, 5});
  EXPECT_EQ(refusal([&] { add(x, zeros(Shape{2})); }),
            "add: the shapes do not repeat to one another; expected axes that are equal or 1; a is [2, 5], b is [2]");
  EXPECT_EQ(refusal([&] {
              mul(x, zeros(Shape{2, 5}, DType::bf16));
            }),
            "mul: a is f32 and b is bf16; expected one type for both (ops/elementwise.h has cast)");
  EXPECT_EQ(refusal([&] { sum(x, {.axes = {2}}); }), "sum: x has no axis 2; expected -2 to 1; x is [2, 5]");
  EXPECT_EQ(refusal([&] { mean(x, {.axes = {1, -1}}); }), "mean: axis -1 is named twice; x is [2, 5]");
  EXPECT_EQ(refusal([&] {
              split(x, 1, {2, 2});
            }),
            "split: the parts [2, 2] do not add up to axis 1; expected 5; x is [2, 5]");
  EXPECT_EQ(refusal([&] { concat({}, 0); }), "concat: there are no parts; expected one or more");
  EXPECT_EQ(refusal([&] {
              concat({x, zeros(Shape{2, 4})}, 0);
            }),
            "concat: parts differ in type or outside axis 0; the first is [2, 5] of f32, another [2, 4] of f32");
  EXPECT_EQ(refusal([&] { adamw({.w = x, .m = x, .v = zeros(Shape{5})}, x, {}); }),
            "adamw: v has another shape; expected [2, 5]; v is [5]");
  EXPECT_EQ(refusal([&] { adamw({.w = x, .m = x, .v = x}, x, {.step = 0}); }), "adamw: step is 0; expected 1 or more");
  EXPECT_EQ(refusal([&] {
              lerp(x.transpose(0, 1), zeros(Shape{5, 2}), 0.5f);
            }),
            "lerp: y is not contiguous; expected one that is, to be changed in place; it is [5, 2]");
}

TEST(RowsRefusals, Rope) {
  const Tensor x = zeros(Shape{2, 3, 1, 8}), places = tensor<int32_t>({0, 1, 2}, Shape{3});
  EXPECT_EQ(refusal([&] { rope(zeros(Shape{8}), places); }),
            "rope: x has rank 1; expected 2 or more, (…, H, D); x is [8]");
  EXPECT_EQ(refusal([&] { rope(x, places, {.width = 10}); }),
            "rope: 10 elements of a head are to be turned; expected an even number up to 8; x is [2, 3, 1, 8]");
  EXPECT_EQ(refusal([&] { rope(x, places, {.base = 0}); }), "rope: base is 0; expected more than 0");
  EXPECT_EQ(refusal([&] {
              rope(x, tensor<int32_t>({0, -1, 2}, Shape{3}));
            }),
            "rope: element 1 of positions is -1; expected 0 or more and below 2147483648; positions is [3]");
  EXPECT_EQ(refusal([&] { rope(x, zeros(Shape{4}, DType::i32)); }),
            "rope: positions does not fit the leading axes of x; expected [2, 3]; x is [2, 3, 1, 8], positions is [4]");
}

TEST(RowsRefusals, LinearCrossEntropy) {
  const Tensor x = zeros(Shape{2, 5}), w = zeros(Shape{7, 5}), targets = zeros(Shape{2}, DType::i32);
  EXPECT_EQ(refusal([&] {
              linear_cross_entropy(x, zeros(Shape{7, 4}), targets);
            }),
            "linear_cross_entropy: w does not fit the last axis of x; expected [V, 5]; x is [2, 5], w is [7, 4]");
  EXPECT_EQ(refusal([&] { linear_cross_entropy(x, w, zeros(Shape{3}, DType::i32)); }),
            "linear_cross_entropy: targets does not fit x; expected one for each row; x is [2, 5], targets is [3]");
  EXPECT_EQ(refusal([&] { linear_cross_entropy(x, w, full(Shape{2}, 7, DType::i32)); }),
            "linear_cross_entropy: target 7 of row 0 is not a class; expected 0 to 6, or -1 for none");
  EXPECT_EQ(refusal([&] { linear_cross_entropy(x.to(DType::f16), w, targets); }),
            "linear_cross_entropy: x has elements of type f16; expected f32 or bf16");
}

TEST(RowsRefusals, NoGradientThroughTopK) {
  const Tensor x = parameter(randn(Shape{2, 5}, 1));
  Tape tape;
  const Tensor loss = sum(top_k(x, 2).values);
  EXPECT_EQ(
      refusal([&] { tape.backward(loss); }),
      "top_k: has no derivative, and a gradient was asked for through it; expected its inputs or its result detached");
}

}  // namespace
}  // namespace mh
