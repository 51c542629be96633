// The op above the matrix product: shapes, leading axes, packed weights, refusals.
#include "multihead/ops/products/matmul.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>

#include "multihead/check/verdict.h"
#include "multihead/kernels/cpu/dispatch.h"

namespace mh {
namespace {

std::string sentence(const std::function<void()>& call, ErrorKind kind = ErrorKind::invalid_argument) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind) << error.what();
    return error.what();
  }
  return "nothing was refused";
}

TEST(Matmul, MultipliesKnownNumbers) {
  const Tensor a = tensor<float>({1, 2, 3, 4, 5, 6}, Shape{2, 3});
  const Tensor w = tensor<float>({1, 0, 0, 1, 1, 1}, Shape{3, 2});
  const Tensor bias = tensor<float>({10, -20}, Shape{2});
  const Tensor residual = tensor<float>({1, 1, 1, 1}, Shape{2, 2});
  EXPECT_TRUE(same_bits(matmul(a, w), tensor<float>({4, 5, 10, 11}, Shape{2, 2})));
  EXPECT_TRUE(same_bits(matmul(a, w, {.bias = bias, .scale = 2}), tensor<float>({18, -10, 30, 2}, Shape{2, 2})));
  EXPECT_TRUE(same_bits(matmul(a, w, {.bias = bias, .residual = residual, .scale = 2, .activation = Activation::relu}),
                        tensor<float>({19, 1, 31, 3}, Shape{2, 2})));
}

TEST(Matmul, LeadingAxesAreRows) {
  const Tensor a = randn(Shape{2, 3, 5, 24}, 1), w = randn(Shape{24, 10}, 2);
  const Tensor y = matmul(a, w);
  EXPECT_EQ(y.shape(), (Shape{2, 3, 5, 10}));
  EXPECT_TRUE(same_bits(y.reshape(Shape{30, 10}), matmul(a.reshape(Shape{30, 24}), w)));
  EXPECT_TRUE(same_bits(y.select(0, 1).select(0, 2).select(0, 4), matmul(a.select(0, 1).select(0, 2).select(0, 4), w)));
  EXPECT_EQ(matmul(randn(Shape{24}, 1), w).shape(), Shape{10});
}

TEST(Matmul, TransposedViewsNeedNoCopy) {
  const Tensor a = randn(Shape{7, 3, 24}, 1), w = randn(Shape{10, 24}, 2);
  const Tensor across = a.transpose(0, 1);
  EXPECT_TRUE(
      same_bits(matmul(across, w.transpose(0, 1)), matmul(across.contiguous(), w.transpose(0, 1).contiguous())));
}

TEST(Matmul, PackedWeightsGiveTheSameBits) {
  for (DType type : {DType::f32, DType::bf16}) {
    const Tensor a = randn(Shape{4, 50, 96}, 1, type), w = randn(Shape{70, 96}, 2, type).transpose(0, 1);
    const PackedWeights packed = prepack(w);
    EXPECT_EQ(packed.rows(), 96);
    EXPECT_EQ(packed.columns(), 70);
    EXPECT_EQ(packed.dtype(), type);
    EXPECT_TRUE(packed);
    const MatmulOptions options{
        .bias = randn(Shape{70}, 3), .residual = randn(Shape{4, 50, 70}, 4, type), .activation = Activation::gelu};
    EXPECT_TRUE(same_bits(matmul(a, w, options), matmul(a, packed, options)));
  }
  EXPECT_FALSE(PackedWeights());
}

TEST(Matmul, ResultAndBiasTakeEitherType) {
  const Tensor a = randn(Shape{9, 40}, 1, DType::bf16), w = randn(Shape{40, 33}, 2, DType::bf16);
  const Tensor bias = randn(Shape{33}, 3, DType::bf16);
  const Tensor wide = matmul(a, w, {.bias = bias, .result = DType::f32});
  EXPECT_EQ(wide.dtype(), DType::f32);
  EXPECT_TRUE(same_bits(wide.to(DType::bf16), matmul(a, w, {.bias = bias.to(DType::f32)})));
}

TEST(Matmul, IntoMemoryOfTheCaller) {
  const Tensor a = randn(Shape{7, 3, 40}, 1).transpose(0, 1), w = randn(Shape{33, 40}, 2).transpose(0, 1);
  const MatmulOptions options{.bias = randn(Shape{33}, 3), .residual = randn(Shape{3, 7, 33}, 4), .scale = 2};
  const Tensor room = full(Shape{5, 7, 33}, -7), y = room.slice(0, 1, 4);
  matmul_into(y, a, w, options);
  EXPECT_TRUE(same_bits(y, matmul(a, w, options)));
  for (int64_t beside : {0, 4}) EXPECT_TRUE(same_bits(room.select(0, beside), full(Shape{7, 33}, -7)));

  const Tensor wide = empty(Shape{3, 7, 33}), a16 = a.to(DType::bf16), w16 = w.to(DType::bf16);
  matmul_into(wide, a16, w16, {.result = DType::bf16});
  EXPECT_TRUE(same_bits(wide, matmul(a16, w16, {.result = DType::f32}))) << "the type is y's";
  matmul_into(empty(Shape{0, 33}), zeros(Shape{0, 40}), w);
}

TEST(Matmul, IntoRefusesMemoryThatDoesNotFit) {
  const Tensor a = zeros(Shape{2, 3}), w = zeros(Shape{3, 3}), y = full(Shape{2, 3}, 5);
  const auto into = [&](const Tensor& to, const MatmulOptions& options = {}) {
    return sentence([&] { matmul_into(to, a, w, options); });
  };
  EXPECT_EQ(into(empty(Shape{3, 2})), "matmul_into: y is [3, 2]; expected contiguous memory of [2, 3]");
  EXPECT_EQ(into(empty(Shape{3, 2}).transpose(0, 1)),
            "matmul_into: y is [2, 3], not contiguous; expected contiguous memory of [2, 3]");
  const std::string shared = "matmul_into: y shares memory with an operand; expected memory of its own; y is [2, 3]";
  EXPECT_EQ(into(a), shared);
  EXPECT_EQ(into(w.slice(0, 1, 3)), shared);
  EXPECT_EQ(into(y, {.residual = y}), shared);
  EXPECT_EQ(into(y, {.gate = y}), shared);
  EXPECT_EQ(into(y, {.bias = y.select(0, 1)}), shared);
  EXPECT_EQ(sentence(
                [&] {
                  matmul_into(zeros(Shape{2, 3}, DType::i32), a, w);
                },
                ErrorKind::unsupported),
            "matmul: the result has elements of type i32; expected f32 or bf16");
  EXPECT_TRUE(same_bits(y, full(Shape{2, 3}, 5))) << "nothing is written";
}

TEST(Matmul, EmptyAxes) {
  EXPECT_EQ(matmul(zeros(Shape{0, 5}), zeros(Shape{5, 3})).shape(), (Shape{0, 3}));
  EXPECT_EQ(matmul(zeros(Shape{2, 0, 5}), prepack(zeros(Shape{5, 3}))).shape(), (Shape{2, 0, 3}));
  EXPECT_EQ(matmul(zeros(Shape{4, 5}), zeros(Shape{5, 0})).shape(), (Shape{4, 0}));
  const Tensor bias = tensor<float>({1, 2, 3}, Shape{3});
  const Tensor wanted = tensor<float>({1, 2, 3, 1, 2, 3}, Shape{2, 3});
  EXPECT_TRUE(same_bits(matmul(zeros(Shape{2, 0}), zeros(Shape{0, 3}), {.bias = bias}), wanted));
  EXPECT_TRUE(same_bits(matmul(zeros(Shape{2, 0}), prepack(zeros(Shape{0, 3})), {.bias = bias}), wanted));
}

TEST(Matmul, RefusesWithASentenceAndTheShapes) {
  const Tensor a = zeros(Shape{2, 5}), w = zeros(Shape{5, 3});
  EXPECT_EQ(sentence([&] {
              matmul(a, zeros(Shape{4, 3}));
            }),
            "matmul: the last axis of a has 5 elements and w has 4 rows; expected the same; a is [2, 5], w is [4, 3]");
  EXPECT_EQ(sentence([&] { matmul(a, zeros(Shape{5})); }), "matmul: w has rank 1; expected 2, (K, N); w is [5]");
  EXPECT_EQ(sentence([&] { prepack(zeros(Shape{5})); }), "prepack: w has rank 1; expected 2, (K, N); w is [5]");
  EXPECT_EQ(sentence([&] { matmul(zeros(Shape{}), w); }), "matmul: a is a scalar; expected rank 1 or more");
  EXPECT_EQ(sentence([&] {
              matmul(a, zeros(Shape{5, 3}, DType::bf16));
            }),
            "matmul: a is f32 and w is bf16; expected one type for both");
  EXPECT_EQ(sentence([&] { matmul(a.to(DType::f64), w.to(DType::f64)); }, ErrorKind::unsupported),
            "matmul: a has elements of type f64; expected f32 or bf16");
  EXPECT_EQ(sentence([&] { prepack(w.to(DType::f16)); }, ErrorKind::unsupported),
            "prepack: w has elements of type f16; expected f32 or bf16");
  EXPECT_EQ(sentence([&] { matmul(a, w, {.result = DType::i8}); }, ErrorKind::unsupported),
            "matmul: the result has elements of type i8; expected f32 or bf16");
  EXPECT_EQ(sentence([&] { matmul(a, w, {.bias = zeros(Shape{4})}); }),
            "matmul: bias does not fit the columns of w; expected [3]; bias is [4]");
  EXPECT_EQ(sentence([&] { matmul(a, w, {.bias = zeros(Shape{3}, DType::f64)}); }, ErrorKind::unsupported),
            "matmul: bias has elements of type f64; expected f32 or bf16");
  EXPECT_EQ(sentence([&] {
              matmul(a, w, {.residual = zeros(Shape{3, 2})});
            }),
            "matmul: residual does not have the shape of the result; expected [2, 3]; residual is [3, 2]");
  EXPECT_EQ(sentence([&] {
              matmul(a, w, {.residual = zeros(Shape{2, 3}, DType::bf16)});
            }),
            "matmul: residual is bf16; expected f32, the type of the result");
  EXPECT_EQ(sentence([&] { matmul(a, PackedWeights()); }), "matmul: w holds no weights; expected what prepack made");
}

TEST(Matmul, RefusesWeightsPackedOnAnotherRung) {
  const auto all = kernels::rungs();
  if (all.size() < 2 || !all[1].usable) GTEST_SKIP() << "this machine has one rung";
  const kernels::Rung before = kernels::rung();
  kernels::use_rung(all[0].rung);
  const PackedWeights packed = prepack(zeros(Shape{5, 3}));
  kernels::use_rung(all[1].rung);
  EXPECT_EQ(sentence([&] {
              matmul(zeros(Shape{2, 5}), packed);
            }),
            "matmul: w was packed on the rung baseline; expected " + std::string(kernels::name(all[1].rung)) +
                ", the one in use; w is [5, 3]");
  kernels::use_rung(before);
}

}  // namespace
}  // namespace mh
