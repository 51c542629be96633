// The contract of element by element arithmetic, of reductions, and of adding up gradients.
#pragma once

#include <cstdint>

#include "multihead/base/view.h"

namespace mh::kernels {

enum class Unary : uint8_t { copy, exp, log, sqrt, square };

// y = factor · f(x) over contiguous elements of one float type, or f32 and bf16 in any mixture.
struct UnaryArgs {
  Unary kind = Unary::copy;
  const void* x = nullptr;
  DType x_type = DType::f32;
  void* y = nullptr;
  DType y_type = DType::f32;
  int64_t count = 0;
  float factor = 1;
};

// add a + factor · b; mul factor · a · b; div factor · a / b; maximum max(a, b), NaN where one is;
// larger 1 where a > b, 1/2 where equal, else 0; equal 1 where a == b, else 0.
enum class Binary : uint8_t { add, mul, div, maximum, larger, equal };

// a and b have the shape of y, repeated by strides of 0; along the last axis a stride is 1 or 0. y is contiguous. All
// three have one float type.
struct BinaryArgs {
  Binary kind = Binary::add;
  View a{}, b{}, y{};
  float factor = 1;
};

// y (outer, inner) f32 = Σ or max over the middle axis of x (outer, middle, inner), contiguous. Middle elements are
// taken in blocks of a size that the three sizes alone decide, added in order. An empty middle gives 0 (sum) or -inf
// (max).
struct ReduceArgs {
  const void* x = nullptr;
  DType x_type = DType::f32;
  int64_t outer = 0, middle = 0, inner = 0;
  float* y = nullptr;
  bool max = false;  // NaN where one is
};

// y += x over contiguous elements; float types, f32 and bf16 in any mixture or both f16. The sum is rounded to y's
// type.
struct AccumulateArgs {
  const void* x = nullptr;
  DType x_type = DType::f32;
  void* y = nullptr;
  DType y_type = DType::f32;
  int64_t count = 0;
};

}  // namespace mh::kernels
