// Element by element arithmetic with broadcasting, and adding up gradients.
#pragma once

#include "multihead/kernels/cpu/rows/vectors.inl"
#include "multihead/kernels/cpu/vector_math.inl"

constexpr float kLn2Upper = 0.693145752f, kLn2Lower = 1.42860677e-06f;

// ln(x): x = 2^k · m with m in [√½, √2), ln m = 2 artanh((m - 1) / (m + 1)) by an odd polynomial with a relative error
// of 4e-9. Subnormal numbers are scaled up first; 0 gives -inf, a negative number and NaN give NaN, +inf gives +inf.
HWY_INLINE V natural_log(V x) {
  const V one = hn::Set(f32, 1.0f), zero = hn::Zero(f32), infinite = hn::Set(f32, -kNone);
  const M small = hn::Lt(x, hn::Set(f32, 0x1p-126f));
  const V scaled = hn::IfThenElse(small, hn::Mul(x, hn::Set(f32, 0x1p24f)), x);
  const auto bits = hn::BitCast(i32, scaled);
  // Rounds the exponent so that m starts at √½.
  const auto k = hn::ShiftRight<23>(hn::Sub(bits, hn::Set(i32, 0x3f3504f3)));
  const V m = hn::BitCast(f32, hn::Sub(bits, hn::ShiftLeft<23>(k)));
  const V exponent = hn::Sub(hn::ConvertTo(f32, k), hn::IfThenElseZero(small, hn::Set(f32, 24.0f)));
  // ln m = f - f · (f / 2) + …: the rounding of f = m - 1 is none, and what is added to it is small.
  const V f = hn::Sub(m, one), s = hn::Div(f, hn::Add(hn::Set(f32, 2.0f), f)), z = hn::Mul(s, s);
  constexpr float kArtanh[] = {0.66666668653f, 0.4000058174f, 0.28498786688f, 0.24279078841f};
  const V half_square = hn::Mul(hn::Mul(f, f), hn::Set(f32, 0.5f));
  const V rest = hn::Mul(s, hn::MulAdd(z, polynomial(kArtanh, z), half_square));
  const V low = hn::MulAdd(exponent, hn::Set(f32, kLn2Lower), rest);
  const V log = hn::MulAdd(exponent, hn::Set(f32, kLn2Upper), hn::Add(f, hn::Sub(low, half_square)));
  const V outside = hn::IfThenElse(hn::Eq(x, zero), hn::Neg(infinite),
                                   hn::IfThenElse(hn::Eq(x, infinite), x, hn::Sub(infinite, infinite)));
  return hn::IfThenElse(hn::And(hn::Gt(x, zero), hn::Lt(x, infinite)), log, outside);
}

// e^x = 2^n · 2^(r · log2 e), x = n · ln 2 + r with ln 2 in two parts, of which the upper has few enough bits for an
// exact product: 2 units in the last place over the whole range, with or without fused multiply-adds. Overflow is +inf;
// below 2^-126 it is 0.
HWY_INLINE V natural_exp(V x) {
  const V top = hn::Set(f32, 90.0f), bottom = hn::Set(f32, -90.0f), unit = hn::Set(f32, kLog2E);
  const V bounded = hn::IfThenElse(hn::Gt(x, top), top, hn::IfThenElse(hn::Lt(x, bottom), bottom, x));
  const V n = hn::Round(hn::Mul(bounded, unit));
  const V r = hn::NegMulAdd(n, hn::Set(f32, kLn2Lower), hn::NegMulAdd(n, hn::Set(f32, kLn2Upper), bounded));
  // 2^128 is past f32, and 2^127 · 2 is not.
  const V half = hn::Floor(hn::Mul(n, hn::Set(f32, 0.5f)));
  const V e = hn::Mul(hn::Mul(exp2(hn::Mul(r, unit)), power_of_two(half)), power_of_two(hn::Sub(n, half)));
  return hn::IfThenZeroElse(hn::Lt(x, hn::Set(f32, -126 * kLn2)), e);
}

template <Unary K>
HWY_INLINE V unary_of(V x) {
  if constexpr (K == Unary::exp) return natural_exp(x);
  if constexpr (K == Unary::log) return natural_log(x);
  if constexpr (K == Unary::sqrt) return hn::Sqrt(x);
  if constexpr (K == Unary::square) return hn::Mul(x, x);
  return x;
}

template <Unary K>
inline void unary_kind(const UnaryArgs& args) {
  const V factor = hn::Set(f32, args.factor);
  with_floats(args.x_type, args.y_type, [&]<class X, class Y>(Of<X>, Of<Y>) {
    const X* x = static_cast<const X*>(args.x);
    Y* y = static_cast<Y*>(args.y);
    for_pieces(args.count, [&](int64_t begin, int64_t count) {
      for_vectors(count, [&](int64_t at, auto extent) {
        put(hn::Mul(factor, unary_of<K>(get(x + begin + at, extent))), y + begin + at, extent);
      });
    });
  });
}

void unary(const UnaryArgs& args, Queue&) {
  switch (args.kind) {
    case Unary::copy: return unary_kind<Unary::copy>(args);
    case Unary::exp: return unary_kind<Unary::exp>(args);
    case Unary::log: return unary_kind<Unary::log>(args);
    case Unary::sqrt: return unary_kind<Unary::sqrt>(args);
    case Unary::square: return unary_kind<Unary::square>(args);
  }
}

template <Binary K>
HWY_INLINE V binary_of(V a, V b, V factor) {
  if constexpr (K == Binary::add) return hn::MulAdd(factor, b, a);
  if constexpr (K == Binary::mul) return hn::Mul(hn::Mul(factor, a), b);
  if constexpr (K == Binary::div) return hn::Div(hn::Mul(factor, a), b);
  const V one = hn::Set(f32, 1.0f);
  if constexpr (K == Binary::maximum) return hn::IfThenElse(hn::Or(hn::Gt(a, b), hn::IsNaN(a)), a, b);
  if constexpr (K == Binary::equal) return hn::IfThenElseZero(hn::Eq(a, b), one);
  return hn::IfThenElse(hn::Gt(a, b), one, hn::IfThenElseZero(hn::Eq(a, b), hn::Set(f32, 0.5f)));
}

// The element of an operand that a row starts at, counting rows of y along all axes but the last.
HWY_INLINE int64_t row_offset(const View& x, const View& shape, int64_t row) {
  int64_t offset = 0;
  for (int axis = shape.rank - 2; axis >= 0; --axis) {
    offset += row % shape.size[axis] * x.stride[axis];
    row /= shape.size[axis];
  }
  return offset;
}

template <class T>
HWY_INLINE V get_along(const T* from, int64_t at, bool repeats, auto extent) {
  return repeats ? hn::Set(f32, widen(*from)) : get(from + at, extent);
}

template <class T, Binary K>
inline void binary_rows(const BinaryArgs& args, int64_t width) {
  const int last = args.y.rank - 1;
  const bool a_repeats = last >= 0 && args.a.stride[last] == 0, b_repeats = last >= 0 && args.b.stride[last] == 0;
  const V factor = hn::Set(f32, args.factor);
  int64_t rows = 1;
  for (int axis = 0; axis < last; ++axis) rows *= args.y.size[axis];
  // A row past a task's size is cut: one long row is work for all threads too.
  const int64_t cuts = blocks_of(width, kElementsPerTask), each = cuts > 1 ? kElementsPerTask : width;
  for_rows(rows * cuts, each, [&](int64_t piece) {
    const int64_t row = piece / cuts, begin = piece % cuts * each, count = smaller(each, width - begin);
    const T* a = static_cast<const T*>(args.a.data) + row_offset(args.a, args.y, row) + (a_repeats ? 0 : begin);
    const T* b = static_cast<const T*>(args.b.data) + row_offset(args.b, args.y, row) + (b_repeats ? 0 : begin);
    T* y = static_cast<T*>(args.y.data) + row * width + begin;
    for_vectors(count, [&](int64_t at, auto extent) {
      put(binary_of<K>(get_along(a, at, a_repeats, extent), get_along(b, at, b_repeats, extent), factor), y + at,
          extent);
    });
  });
}

template <Binary K>
inline void binary_kind(const BinaryArgs& args) {
  const int64_t width = args.y.rank > 0 ? args.y.size[args.y.rank - 1] : 1;
  with_float(args.y.dtype, [&]<class T>(Of<T>) { binary_rows<T, K>(args, width); });
}

void binary(const BinaryArgs& args, Queue&) {
  switch (args.kind) {
    case Binary::add: return binary_kind<Binary::add>(args);
    case Binary::mul: return binary_kind<Binary::mul>(args);
    case Binary::div: return binary_kind<Binary::div>(args);
    case Binary::maximum: return binary_kind<Binary::maximum>(args);
    case Binary::larger: return binary_kind<Binary::larger>(args);
    case Binary::equal: return binary_kind<Binary::equal>(args);
  }
}

void accumulate(const AccumulateArgs& args, Queue&) {
  with_floats(args.x_type, args.y_type, [&]<class X, class Y>(Of<X>, Of<Y>) {
    const X* x = static_cast<const X*>(args.x);
    Y* y = static_cast<Y*>(args.y);
    for_pieces(args.count, [&](int64_t begin, int64_t count) {
      for_vectors(count, [&](int64_t at, auto extent) {
        put(hn::Add(get(y + begin + at, extent), get(x + begin + at, extent)), y + begin + at, extent);
      });
    });
  });
}
