// Products with an operand that is mostly zeros: the bits are those of a part so small that no zero is left out.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "multihead/base/parallel.h"
#include "multihead/kernels/cpu/dispatch.h"
#include "multihead/kernels/gemm.h"
#include "multihead/tensor/tensor.h"

namespace mh {
namespace {

using kernels::Activation;
using kernels::GemmArgs;

template <class Body>
void on_every_rung(Body&& body) {
  const kernels::Rung before = kernels::rung();
  for (const kernels::RungStatus& status : kernels::rungs()) {
    if (!status.usable) continue;
    kernels::use_rung(status.rung);
    SCOPED_TRACE(std::string(kernels::cpu().rung));
    body();
  }
  kernels::use_rung(before);
}

// Normal numbers of which about `share` are 0, some of those -0.
Tensor holed(int64_t rows, int64_t columns, double share, uint64_t seed) {
  const Tensor x = randn(Shape{rows, columns}, seed);
  std::mt19937 draw(static_cast<uint32_t>(seed));
  for (int64_t n = 0; n < x.count(); ++n)
    if (draw() < share * 4294967296.0) x.data<float>()[n] = n % 3 == 0 ? -0.0f : 0.0f;
  return x;
}

// The same numbers, columns one after the other in memory.
Tensor turned(const Tensor& x) { return x.transpose(0, 1).contiguous().transpose(0, 1); }

struct Product {
  Tensor a, w;
  Tensor bias{}, residual{};
  float scale = 1;
  Activation activation = Activation::none;
  bool packed = false;
  DType result = DType::f32;
};

Tensor run(const Product& p) {
  const Tensor y = full(Shape{p.a.size(0), p.w.size(1)}, 77, p.result);
  GemmArgs args{.a = p.a.view(),
                .w = p.w.view(),
                .n = p.w.size(1),
                .k = p.w.size(0),
                .y = y.view(),
                .scale = p.scale,
                .activation = p.activation};
  if (p.bias) args.bias = p.bias.view();
  if (p.residual) args.residual = p.residual.view();
  Tensor words;
  if (p.packed) {
    int64_t bytes = 0;
    kernels::cpu().gemm_pack({.w = p.w.view(), .bytes = &bytes});
    words = empty(Shape{bytes}, DType::u8);
    kernels::cpu().gemm_pack({.w = p.w.view(), .packed = words.data<uint8_t>()});
    args.packed = words.data<uint8_t>();
    args.w = {};
  }
  kernels::cpu().gemm(args);
  return y;
}

bool same_bits(const Tensor& x, const Tensor& y) {
  const Tensor a = x.contiguous(), b = y.contiguous();
  return a.shape() == b.shape() &&
         std::memcmp(a.view().data, b.view().data, static_cast<size_t>(a.count() * size_of(a.dtype()))) == 0;
}

// Rows [first, first + 60) alone.
Product part_of(const Product& p, int64_t first) {
  Product part = p;
  part.a = p.a.slice(0, first, first + 60);
  if (p.residual) part.residual = p.residual.slice(0, first, first + 60);
  return part;
}

void expect_bits_of_parts(const Product& p) {
  const Tensor y = run(p);
  for (int64_t first : {int64_t{0}, int64_t{37}, p.a.size(0) - 60})
    EXPECT_TRUE(same_bits(y.slice(0, first, first + 60), run(part_of(p, first)))) << "rows from " << first;
}

TEST(GemmFilled, ZerosOfTheRowsLeftOutChangeNoBit) {
  on_every_rung([] {
    for (double share : {0.45, 0.8, 1.0}) {
      for (int64_t k : {512, 777}) {
        for (int64_t n : {96, 131, 160}) {
          Product p{.a = holed(200, k, share, 1), .w = randn(Shape{k, n}, 3)};
          expect_bits_of_parts(p);
          p.packed = true;
          expect_bits_of_parts(p);
        }
      }
      Product p{.a = turned(holed(530, 300, share, 1)), .w = turned(randn(Shape{300, 107}, 3))};
      expect_bits_of_parts(p);
    }
  });
}

TEST(GemmFilled, ZerosOfTheWeightsLeftOutChangeNoBit) {
  on_every_rung([] {
    for (double share : {0.45, 0.8, 1.0}) {
      Product p{.a = randn(Shape{107, 300}, 1), .w = holed(300, 535, share, 3), .scale = 0.3f};
      expect_bits_of_parts(p);
      p.a = turned(p.a);
      expect_bits_of_parts(p);
      expect_bits_of_parts({.a = randn(Shape{107, 600}, 1), .w = turned(holed(600, 149, share, 3))});
    }
  });
}

TEST(GemmFilled, WhatFollowsTheSumsFollowsThem) {
  on_every_rung([] {
    for (DType type : {DType::f32, DType::bf16}) {
      Product p{.a = holed(200, 600, 0.5, 1), .w = randn(Shape{600, 101}, 3), .scale = 0.7f, .result = type};
      p.bias = randn(Shape{101}, 5);
      p.activation = Activation::gelu;
      p.residual = randn(Shape{200, 101}, 6, type);
      expect_bits_of_parts(p);
      // Followed by something, zeros of the weights are not left out.
      p.a = randn(Shape{200, 600}, 1);
      p.w = holed(600, 512, 0.5, 3);
      p.bias = randn(Shape{512}, 5);
      p.residual = randn(Shape{200, 512}, 6, type);
      expect_bits_of_parts(p);
    }
  });
}

TEST(GemmFilled, ThreadsChangeNoBit) {
  const int before = threads();
  const Product rows{.a = holed(290, 530, 0.5, 1), .w = randn(Shape{530, 201}, 3)};
  const Product weights{.a = randn(Shape{201, 290}, 1), .w = holed(290, 530, 0.5, 3)};
  on_every_rung([&] {
    for (const Product& p : {rows, weights}) {
      set_threads(1);
      const Tensor y = run(p);
      for (int n : {2, 3, 7}) {
        set_threads(n);
        EXPECT_TRUE(same_bits(y, run(p))) << n << " threads";
      }
    }
  });
  set_threads(before);
}

TEST(GemmFilled, NanAndInfinityTimesZeroAreNotLost) {
  for (float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    on_every_rung([&] {
      Product p{.a = holed(200, 600, 0.9, 1), .w = randn(Shape{600, 131}, 3)};
      p.w.data<float>()[599 * 131 + 130] = bad;
      for (bool packed : {false, true}) {
        p.packed = packed;
        const Tensor y = run(p);
        for (int64_t i = 0; i < 200; ++i) EXPECT_FALSE(std::isfinite(y.item({i, 130}))) << "row " << i;
        EXPECT_TRUE(std::isfinite(y.item({199, 129})));
      }
      p = {.a = randn(Shape{100, 300}, 1), .w = holed(300, 530, 0.9, 3)};
      p.a.data<float>()[99 * 300 + 299] = bad;
      const Tensor y = run(p);
      for (int64_t j = 0; j < 530; ++j) EXPECT_FALSE(std::isfinite(y.item({99, j}))) << "column " << j;
      EXPECT_TRUE(std::isfinite(y.item({98, 529})));
    });
  }
}

TEST(GemmFilled, NanAndInfinityOfTheRowsStay) {
  on_every_rung([] {
    for (float bad : {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
      Product p{.a = holed(200, 600, 0.9, 1), .w = randn(Shape{600, 131}, 3)};
      p.a.data<float>()[7 * 600 + 300] = bad;
      const Tensor y = run(p);
      for (int64_t j = 0; j < 131; ++j) EXPECT_FALSE(std::isfinite(y.item({7, j}))) << "column " << j;
      EXPECT_TRUE(std::isfinite(y.item({8, 0})));
    }
  });
}

}  // namespace
}  // namespace mh
