// The matrix product of every rung: values against double, one order of sums, edges.
#include "multihead/kernels/gemm.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "multihead/base/parallel.h"
#include "multihead/check/verdict.h"
#include "tests/kernels/gemm_call.h"

namespace mh {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

template <class Real>
Real activate(Activation activation, Real x) {
  switch (activation) {
    case Activation::none: return x;
    case Activation::relu: return x < 0 ? 0 : x;
    case Activation::gelu: return x / 2 * (1 + std::erf(x * static_cast<Real>(M_SQRT1_2)));
    case Activation::gelu_tanh: {
      const Real u = static_cast<Real>(std::sqrt(2 / M_PI)) * (x + static_cast<Real>(0.044715) * x * x * x);
      return x / 2 * (1 + std::tanh(u));
    }
    case Activation::silu: return x / (1 + std::exp(-x));
    case Activation::sigmoid: return 1 / (1 + std::exp(-x));
    case Activation::tanh: return std::tanh(x);
    case Activation::quick_gelu: return x / (1 + std::exp(static_cast<Real>(-1.702) * x));
  }
  return x;
}

// The plain algorithm: three loops in Real, rounded to the result's type by the caller.
template <class Real>
std::vector<Real> plain(const Product& p) {
  const Tensor a = p.a.contiguous().to(DType::f32), w = p.w.contiguous().to(DType::f32);
  const int64_t m = p.m(), n = p.n(), depth = p.k();
  std::vector<Real> y(static_cast<size_t>(m * n), 0);
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t k = 0; k < depth; ++k) {
      const Real x = a.data<float>()[i * depth + k];
      const float* row = w.data<float>() + k * n;
      for (int64_t j = 0; j < n; ++j) y[i * n + j] += x * static_cast<Real>(row[j]);
    }
  }
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      Real& x = y[i * n + j];
      x *= p.scale;
      if (p.bias) x += static_cast<Real>(p.bias.item({j}));
      x = activate(p.activation, x);
      if (p.residual) x += static_cast<Real>(p.residual.item({i, j}));
    }
  }
  return y;
}

float rounded(double x, DType type) {
  return type == DType::bf16 ? static_cast<float>(bf16(static_cast<float>(x))) : static_cast<float>(x);
}

// The accuracy rule: at most 1.5 × the error of the plain algorithm in the same type, plus 2 units of the largest
// value.
struct Judge {
  explicit Judge(const Product& p) : exact(plain<double>(p)), type(p.result) {
    const std::vector<float> single = plain<float>(p);
    double worst = 0, largest = 0;
    for (size_t i = 0; i < exact.size(); ++i) {
      worst = std::max(worst, std::fabs(rounded(single[i], type) - exact[i]));
      largest = std::max(largest, std::fabs(exact[i]));
    }
    allowed = 1.5 * worst + 2 * std::ldexp(1.0, type == DType::bf16 ? std::ilogb(largest + 1e-30) - 7
                                                                    : std::ilogb(largest + 1e-30) - 23);
  }

  double error(const Tensor& y) const {
    const Tensor values = y.contiguous().to(DType::f32);
    double worst = 0;
    for (size_t i = 0; i < exact.size(); ++i) {
      const double error = std::fabs(values.data<float>()[i] - exact[i]);
      worst = std::isnan(error) ? kInfinity : std::max(worst, error);
    }
    return worst;
  }

  std::vector<double> exact;
  DType type;
  double allowed;
};

std::string label(const Machine& machine, const Product& p) {
  return machine.name + " " + std::string(name(p.a.dtype())) + " " + std::to_string(p.m()) + " x " +
         std::to_string(p.n()) + " x " + std::to_string(p.k());
}

void expect_accurate(const Product& p) {
  const Judge judge(p);
  for (const Machine& machine : machines()) {
    for (Weights kind : {Weights::plain, Weights::packed}) {
      const Tensor y = run(machine, p, kind);
      EXPECT_LE(judge.error(y), judge.allowed) << label(machine, p) << (kind == Weights::packed ? " packed" : " plain");
    }
  }
}

constexpr DType kTypes[] = {DType::f32, DType::bf16};

// The largest error of thousands of elements is a steady measure, that of a few is not: small products are judged by
// having the bits of a part of the large one.
TEST(Gemm, HoldsTheAccuracyRuleAndSmallerProductsHaveTheSameBits) {
  for (DType type : kTypes) {
    for (int64_t k : {1, 2, 31, 64, 257, 513}) {
      const Product p = make(131, 97, k, type);
      expect_accurate(p);
      for (const Machine& machine : machines()) {
        const Tensor y = run(machine, p, Weights::packed);
        for (int64_t m : {1, 2, 5, 8, 11, 33, 131}) {
          for (int64_t n : {1, 7, 15, 16, 17, 47, 48, 49, 96, 97}) {
            Product part = p;
            part.a = p.a.slice(0, 0, m);
            part.w = p.w.slice(1, 97 - n, 97);
            const Tensor wanted = y.slice(0, 0, m).slice(1, 97 - n, 97);
            EXPECT_TRUE(same_bits(wanted, run(machine, part, Weights::packed))) << label(machine, part) << " packed";
            EXPECT_TRUE(same_bits(wanted, run(machine, part, Weights::plain))) << label(machine, part) << " plain";
          }
        }
      }
    }
  }
}

// Plain operands are packed some at a time: here both come in two pieces or more on every rung.
TEST(Gemm, OperandsInPiecesGiveTheSameBits) {
  for (DType type : kTypes) {
    const Product p = make(300, 230, 33001, type);
    for (const Machine& machine : machines()) {
      const Tensor y = run(machine, p, Weights::plain);
      for (int64_t first : {126, 254}) {
        Product part = p;
        part.a = p.a.slice(0, first, first + 5);
        EXPECT_TRUE(same_bits(y.slice(0, first, first + 5), run(machine, part, Weights::packed)))
            << label(machine, part);
      }
    }
  }
}

// The same numbers in another order of memory: every third.
Tensor spread(const Tensor& x) {
  const Tensor wide = full(Shape{x.size(0), x.size(1), 3}, kNan, x.dtype());
  const Tensor every_third = wide.select(2, 1);
  every_third.copy_from(x);
  return every_third;
}

TEST(Gemm, StridesChangeNoBit) {
  for (DType type : kTypes) {
    for (const auto& [m, k] : {std::pair{1, 301}, {6, 301}, {21, 301}, {140, 301}, {300, 1100}}) {
      const Product p = make(m, 83, k, type);
      for (const Machine& machine : machines()) {
        const Tensor y = run(machine, p, Weights::plain);
        for (auto a : {p.a, turned(p.a), spread(p.a)}) {
          for (auto w : {p.w, turned(p.w), spread(p.w)}) {
            Product q = p;
            q.a = a;
            q.w = w;
            EXPECT_TRUE(same_bits(y, run(machine, q, Weights::plain))) << label(machine, p);
            EXPECT_TRUE(same_bits(y, run(machine, q, Weights::packed))) << label(machine, p);
          }
        }
      }
    }
  }
}

TEST(Gemm, RowsHaveTheSameBitsAloneAndInAnyBatch) {
  for (DType type : kTypes) {
    Product p = make(300, 107, 777, type);
    p.bias = randn(Shape{107}, 3);
    p.activation = Activation::gelu;
    for (const Machine& machine : machines()) {
      const Tensor y = run(machine, p, Weights::packed);
      for (int64_t rows : {1, 2, 7, 8, 9, 16, 17, 31, 33, 129, 299}) {
        for (int64_t first : {int64_t{0}, int64_t{1}, 300 - rows}) {
          Product part = p;
          part.a = p.a.slice(0, first, first + rows);
          for (Weights kind : {Weights::plain, Weights::packed})
            EXPECT_TRUE(same_bits(y.slice(0, first, first + rows), run(machine, part, kind)))
                << label(machine, part) << " at " << first;
        }
      }
    }
  }
}

TEST(Gemm, TilesRefineTheRungBelow) {
  if (!kernels::amx_twin()) GTEST_SKIP() << "the twin of the tiles needs AVX-512";
  const kernels::Rung before = kernels::rung();
  kernels::use_rung(kernels::Rung::avx512);
  EXPECT_NE(kernels::amx_twin()->gemm.run, kernels::kernels_of(Device{}).gemm.run);
  EXPECT_NE(kernels::amx_twin()->gemm_pack.run, kernels::kernels_of(Device{}).gemm_pack.run);
  kernels::use_rung(before);
}

TEST(Gemm, ThreadsChangeNoBit) {
  const int before = threads();
  for (DType type : kTypes) {
    for (int64_t m : {3, 290}) {
      const Product p = make(m, 601, 530, type);
      for (const Machine& machine : machines()) {
        set_threads(1);
        const Tensor y = run(machine, p, Weights::plain);
        for (int n : {2, 3, 7, 16}) {
          set_threads(n);
          EXPECT_TRUE(same_bits(y, run(machine, p, Weights::plain))) << label(machine, p) << ", " << n << " threads";
          EXPECT_TRUE(same_bits(y, run(machine, p, Weights::packed)))
              << label(machine, p) << ", " << n << " threads, packed";
        }
      }
    }
  }
  set_threads(before);
}

TEST(Gemm, FusedTailHoldsTheAccuracyRule) {
  for (DType type : kTypes) {
    for (DType result : kTypes) {
      for (Activation activation : {Activation::none, Activation::relu, Activation::gelu, Activation::gelu_tanh,
                                    Activation::silu, Activation::sigmoid, Activation::tanh, Activation::quick_gelu}) {
        Product p = make(80, 61, 90, type);
        p.result = result;
        p.activation = activation;
        p.scale = 0.25f;
        expect_accurate(p);
        p.bias = randn(Shape{61}, 3);
        expect_accurate(p);
        p.residual = randn(Shape{80, 61}, 4, result);
        expect_accurate(p);
      }
    }
  }
}

TEST(Gemm, ResidualMayBeTheResultItself) {
  for (DType type : kTypes) {
    Product p = make(150, 70, 600, type);
    p.residual = randn(Shape{150, 70}, 4, type);
    for (const Machine& machine : machines()) {
      const Tensor y = run(machine, p, Weights::plain);
      Product in_place = p;
      in_place.residual = p.residual.clone();
      run_into(machine, in_place, Weights::plain, in_place.residual);
      EXPECT_TRUE(same_bits(y, in_place.residual)) << label(machine, p);
    }
  }
}

TEST(Gemm, WritesOnlyItsResult) {
  for (DType type : kTypes) {
    for (int64_t m : {1, 7, 150}) {
      const Product p = make(m, 61, 70, type);
      for (const Machine& machine : machines()) {
        const Tensor room = full(Shape{m + 2, 100}, 77, type);
        const Tensor y = room.slice(0, 1, m + 1).slice(1, 20, 81);
        run_into(machine, p, Weights::packed, y);
        EXPECT_TRUE(same_bits(y, run(machine, p, Weights::packed))) << label(machine, p);
        y.copy_from(full(Shape{m, 61}, 77, type));
        EXPECT_TRUE(same_bits(room, full(Shape{m + 2, 100}, 77, type))) << label(machine, p);
      }
    }
  }
}

TEST(Gemm, NanAndInfinityReachTheirRowOrColumnAndNoOther) {
  for (DType type : kTypes) {
    for (float bad : {kNan, kInfinity}) {
      for (int64_t m : {5, 140}) {
        Product p = make(m, 75, 300, type);
        for (const Machine& machine : machines()) {
          const Tensor y = run(machine, p, Weights::plain);
          Product row = p;
          row.a = p.a.clone();
          row.a.slice(0, 3, 4).slice(1, 299, 300).copy_from(full(Shape{1, 1}, bad, type));
          const Tensor bad_row = run(machine, row, Weights::packed);
          Product column = p;
          column.w = p.w.clone();
          column.w.slice(0, 299, 300).slice(1, 74, 75).copy_from(full(Shape{1, 1}, bad, type));
          const Tensor bad_column = run(machine, column, Weights::plain);
          for (int64_t j = 0; j < 75; ++j)
            EXPECT_FALSE(std::isfinite(bad_row.item({3, j}))) << label(machine, p) << " column " << j;
          for (int64_t i = 0; i < m; ++i)
            EXPECT_FALSE(std::isfinite(bad_column.item({i, 74}))) << label(machine, p) << " row " << i;
          EXPECT_TRUE(same_bits(y.slice(0, 0, 3), bad_row.slice(0, 0, 3))) << label(machine, p);
          EXPECT_TRUE(same_bits(y.slice(0, 4, m), bad_row.slice(0, 4, m))) << label(machine, p);
          EXPECT_TRUE(same_bits(y.slice(1, 0, 74), bad_column.slice(1, 0, 74))) << label(machine, p);
        }
      }
    }
  }
}

TEST(Gemm, WithoutDepthTheSumsAreZero) {
  for (DType type : kTypes) {
    for (int64_t m : {1, 9, 200}) {
      Product p = make(m, 50, 0, type);
      p.bias = randn(Shape{50}, 3);
      for (const Machine& machine : machines()) {
        for (Weights kind : {Weights::plain, Weights::packed}) {
          const Tensor y = run(machine, p, kind);
          for (int64_t j = 0; j < 50; ++j)
            EXPECT_EQ(y.item({m - 1, j}), rounded(p.bias.item({j}), type)) << label(machine, p);
        }
      }
    }
  }
}

TEST(Gemm, WithoutRowsOrColumnsNothingIsWritten) {
  for (DType type : kTypes) {
    for (const Machine& machine : machines()) {
      run(machine, make(0, 20, 30, type), Weights::plain);
      run(machine, make(0, 20, 30, type), Weights::packed);
      run(machine, make(20, 0, 30, type), Weights::plain);
      run(machine, make(20, 0, 30, type), Weights::packed);
    }
  }
}

// Values through a product of depth 1, so that only the activation is at work.
std::vector<float> activated(const Machine& machine, Activation activation, const std::vector<float>& x) {
  const int64_t n = static_cast<int64_t>(x.size());
  Product p{
      .a = full(Shape{1, 1}, 1), .w = full(Shape{1, n}, 0), .bias = tensor(x, Shape{n}), .activation = activation};
  const Tensor y = run(machine, p, Weights::plain);
  return std::vector<float>(y.data<float>(), y.data<float>() + n);
}

TEST(Gemm, ActivationsKeepRelativeAccuracyInTheTail) {
  std::vector<float> x;
  for (int i = -8000; i <= 8000; ++i) x.push_back(static_cast<float>(i) / 1000);
  for (const Machine& machine : machines()) {
    const std::vector<float> gelu = activated(machine, Activation::gelu, x);
    const std::vector<float> gelu_tanh = activated(machine, Activation::gelu_tanh, x);
    for (size_t i = 0; i < x.size(); ++i) {
      const double v = x[i], exact = v / 2 * std::erfc(-v * M_SQRT1_2);
      // exp(-v²/2) without a fused multiply-add is off by v²/2 half units.
      const double units = (machine.name == "baseline" ? 4 + v * v : 8) * std::ldexp(1.0, -23);
      EXPECT_NEAR(gelu[i], exact, units * std::fabs(exact)) << machine.name << " gelu of " << v;
      const double u = std::sqrt(2 / M_PI) * (v + 0.044715 * v * v * v), exact_tanh = v / (1 + std::exp(-2 * u));
      EXPECT_NEAR(gelu_tanh[i], exact_tanh,
                  (8 + 4 * std::fabs(u)) * std::ldexp(1.0, -23) * std::fabs(exact_tanh) + 1e-37)
          << machine.name << " gelu_tanh of " << v;
    }
  }
}

TEST(Gemm, ActivationsAtTheEdges) {
  const std::vector<float> x = {kNan, kInfinity, -kInfinity, 0.0f, 3e38f, -3e38f, 30.0f, -30.0f};
  for (const Machine& machine : machines()) {
    for (Activation activation : {Activation::relu, Activation::gelu, Activation::gelu_tanh}) {
      const std::vector<float> y = activated(machine, activation, x);
      EXPECT_TRUE(std::isnan(y[0])) << machine.name;
      EXPECT_EQ(y[1], kInfinity) << machine.name;
      EXPECT_EQ(y[2], 0.0f) << machine.name;
      EXPECT_EQ(y[3], 0.0f) << machine.name;
      EXPECT_EQ(y[4], 3e38f) << machine.name;
      EXPECT_EQ(y[5], 0.0f) << machine.name;
      EXPECT_EQ(y[6], 30.0f) << machine.name;
      EXPECT_NEAR(y[7], 0.0f, 1e-37) << machine.name;
    }
  }
}

TEST(Gemm, AGateThatIsNotAboveZeroGivesZero) {
  for (const Machine& machine : machines()) {
    for (const DType type : {DType::f32, DType::bf16}) {
      for (const auto& [m, n, k] : {std::array<int64_t, 3>{3, 33, 20}, {40, 96, 64}, {150, 70, 300}, {200, 256, 256}}) {
        Product p = make(m, n, k, type);
        p.a.select(0, 1).copy_from(full(Shape{k}, kNan, type));
        for (const bool more : {false, true}) {
          p.gate = {};
          if (more) {
            p.bias = randn(Shape{n}, 3);
            p.residual = randn(Shape{m, n}, 4, type);
          }
          const Tensor open = run(machine, p, Weights::plain);
          p.gate = randn(Shape{m, n}, 5, type);
          p.gate.select(0, 0).copy_from(full(Shape{n}, kNan, type));
          const Tensor y = run(machine, p, Weights::plain);
          for (int64_t i = 0; i < m; ++i) {
            for (int64_t j = 0; j < n; ++j) {
              const double expected = p.gate.item({i, j}) > 0 ? open.item({i, j}) : 0, got = y.item({i, j});
              ASSERT_TRUE(got == expected || (std::isnan(got) && std::isnan(expected)))
                  << machine.name << " " << name(type) << " " << m << " " << n << " " << k << " at " << i << " " << j;
            }
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace mh
