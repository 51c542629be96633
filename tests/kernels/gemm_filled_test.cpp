// Products with an operand that is mostly zeros: the bits are those of a part so small that no zero is left out.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "multihead/base/parallel.h"
#include "multihead/check/verdict.h"
#include "tests/kernels/gemm_call.h"

namespace mh {
namespace {

template <class Body>
void on_every_machine(Body&& body) {
  for (const Machine& machine : machines()) {
    SCOPED_TRACE(machine.name);
    body(machine);
  }
}

// Normal numbers of which about `share` are 0, some of those -0.
Tensor holed(int64_t rows, int64_t columns, double share, uint64_t seed) {
  const Tensor x = randn(Shape{rows, columns}, seed);
  std::mt19937 draw(static_cast<uint32_t>(seed));
  for (int64_t n = 0; n < x.count(); ++n)
    if (draw() < share * 4294967296.0) x.data<float>()[n] = n % 3 == 0 ? -0.0f : 0.0f;
  return x;
}

// Rows [first, first + 60) alone.
Product part_of(const Product& p, int64_t first) {
  Product part = p;
  part.a = p.a.slice(0, first, first + 60);
  if (p.residual) part.residual = p.residual.slice(0, first, first + 60);
  return part;
}

void expect_bits_of_parts(const Machine& machine, const Product& p, Weights kind = Weights::plain) {
  const Tensor y = run(machine, p, kind);
  for (int64_t first : {int64_t{0}, int64_t{37}, p.m() - 60})
    EXPECT_TRUE(same_bits(y.slice(0, first, first + 60), run(machine, part_of(p, first), kind)))
        << "rows from " << first;
}

TEST(GemmFilled, ZerosOfTheRowsLeftOutChangeNoBit) {
  on_every_machine([](const Machine& machine) {
    for (double share : {0.45, 0.8, 1.0}) {
      for (int64_t k : {512, 777}) {
        for (int64_t n : {96, 131, 160}) {
          const Product p{.a = holed(200, k, share, 1), .w = randn(Shape{k, n}, 3)};
          expect_bits_of_parts(machine, p);
          expect_bits_of_parts(machine, p, Weights::packed);
        }
      }
      Product p{.a = turned(holed(530, 300, share, 1)), .w = turned(randn(Shape{300, 107}, 3))};
      expect_bits_of_parts(machine, p);
    }
  });
}

TEST(GemmFilled, ZerosOfTheWeightsLeftOutChangeNoBit) {
  on_every_machine([](const Machine& machine) {
    for (double share : {0.45, 0.8, 1.0}) {
      Product p{.a = randn(Shape{107, 300}, 1), .w = holed(300, 535, share, 3), .scale = 0.3f};
      expect_bits_of_parts(machine, p);
      p.a = turned(p.a);
      expect_bits_of_parts(machine, p);
      expect_bits_of_parts(machine, {.a = randn(Shape{107, 600}, 1), .w = turned(holed(600, 149, share, 3))});
    }
  });
}

TEST(GemmFilled, WhatFollowsTheSumsFollowsThem) {
  on_every_machine([](const Machine& machine) {
    for (DType type : {DType::f32, DType::bf16}) {
      Product p{.a = holed(200, 600, 0.5, 1), .w = randn(Shape{600, 101}, 3), .scale = 0.7f, .result = type};
      p.bias = randn(Shape{101}, 5);
      p.activation = Activation::gelu;
      p.residual = randn(Shape{200, 101}, 6, type);
      expect_bits_of_parts(machine, p);
      // Followed by something, zeros of the weights are not left out.
      p.a = randn(Shape{200, 600}, 1);
      p.w = holed(600, 512, 0.5, 3);
      p.bias = randn(Shape{512}, 5);
      p.residual = randn(Shape{200, 512}, 6, type);
      expect_bits_of_parts(machine, p);
    }
  });
}

TEST(GemmFilled, ThreadsChangeNoBit) {
  const int before = threads();
  const Product rows{.a = holed(290, 530, 0.5, 1), .w = randn(Shape{530, 201}, 3)};
  const Product weights{.a = randn(Shape{201, 290}, 1), .w = holed(290, 530, 0.5, 3)};
  on_every_machine([&](const Machine& machine) {
    for (const Product& p : {rows, weights}) {
      set_threads(1);
      const Tensor y = run(machine, p, Weights::plain);
      for (int n : {2, 3, 7}) {
        set_threads(n);
        EXPECT_TRUE(same_bits(y, run(machine, p, Weights::plain))) << n << " threads";
      }
    }
  });
  set_threads(before);
}

TEST(GemmFilled, NanAndInfinityTimesZeroAreNotLost) {
  for (float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    on_every_machine([&](const Machine& machine) {
      Product p{.a = holed(200, 600, 0.9, 1), .w = randn(Shape{600, 131}, 3)};
      p.w.data<float>()[599 * 131 + 130] = bad;
      for (Weights kind : {Weights::plain, Weights::packed}) {
        const Tensor y = run(machine, p, kind);
        for (int64_t i = 0; i < 200; ++i) EXPECT_FALSE(std::isfinite(y.item({i, 130}))) << "row " << i;
        EXPECT_TRUE(std::isfinite(y.item({199, 129})));
      }
      p = {.a = randn(Shape{100, 300}, 1), .w = holed(300, 530, 0.9, 3)};
      p.a.data<float>()[99 * 300 + 299] = bad;
      const Tensor y = run(machine, p, Weights::plain);
      for (int64_t j = 0; j < 530; ++j) EXPECT_FALSE(std::isfinite(y.item({99, j}))) << "column " << j;
      EXPECT_TRUE(std::isfinite(y.item({98, 529})));
    });
  }
}

TEST(GemmFilled, NanAndInfinityOfTheRowsStay) {
  on_every_machine([](const Machine& machine) {
    for (float bad : {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
      Product p{.a = holed(200, 600, 0.9, 1), .w = randn(Shape{600, 131}, 3)};
      p.a.data<float>()[7 * 600 + 300] = bad;
      const Tensor y = run(machine, p, Weights::plain);
      for (int64_t j = 0; j < 131; ++j) EXPECT_FALSE(std::isfinite(y.item({7, j}))) << "column " << j;
      EXPECT_TRUE(std::isfinite(y.item({8, 0})));
    }
  });
}

}  // namespace
}  // namespace mh
