// Activations on vectors, and their derivatives.
//
// gelu, gelu_tanh, silu and quick_gelu are x · S(x) with S(-x) = 1 - S(x): max(x, 0) less the even |x| · S(-|x|), which
// keeps the relative accuracy of small results. Their derivative is E for x < 0 and 1 - E for x > 0, where E = S(-a) -
// a · S'(-a), a = |x|. NaN stays NaN.
#pragma once

#include "multihead/kernels/cpu/vector_math.inl"

// S(-a) and S'(-a) for a = |x|.
struct Tail {
  V value, slope;
};

// S = Φ, the normal distribution, for a in [0, 16]: Φ(-a) = exp(-a²/2) · t · p(2t - 1) with t = 1 / (1 + 0.3 a). p is a
// weighted least-squares fit on a in [0, 14] with a relative error of 3.5e-9; the rounding of a² is carried along.
HWY_INLINE Tail normal_tail(V a) {
  constexpr float kTail[] = {0.22197061777114868f,    0.16457948088645935f,   0.08654970675706863f,
                             0.02776033990085125f,    0.0018160298932343721f, -0.0024235087912529707f,
                             -0.0005696704029105604f, 0.0002806259726639837f, 7.663396536372602e-05f,
                             -4.025995440315455e-05f};
  const V one = hn::Set(f32, 1.0f);
  const V half_log2e = hn::Set(f32, 0.5f * kLog2E);
  const V t = hn::Div(one, hn::MulAdd(a, hn::Set(f32, 0.3f), one));
  const V p = hn::Mul(t, polynomial(kTail, hn::Sub(hn::Add(t, t), one)));
  const V square = hn::Mul(a, a);
  const V power = hn::Mul(square, half_log2e);
  const V lost = hn::MulAdd(hn::MulSub(a, a, square), half_log2e, hn::MulSub(square, half_log2e, power));
  const V e = hn::Mul(exp2(hn::Neg(power)), hn::NegMulAdd(lost, hn::Set(f32, kLn2), one));
  return {hn::Mul(e, p), hn::Mul(e, hn::Set(f32, 0.3989422804014327f))};
}

// S(-a) = 1 / (1 + exp(u)) = e / (1 + e), e = exp(-u).
HWY_INLINE Tail logistic_tail(V e) {
  const V whole = hn::Add(hn::Set(f32, 1.0f), e);
  const V value = hn::Div(e, whole);
  return {value, hn::Div(value, whole)};
}

// u = 2 √(2/π) (a + 0.044715 a³), for a in [0, 16].
HWY_INLINE Tail tanh_tail(V a) {
  constexpr float kTwice = 2 * 0.7978845608028654f;
  const V one = hn::Set(f32, 1.0f), square = hn::Mul(a, a);
  const V cubic = hn::MulAdd(square, hn::Set(f32, 0.044715f), one);
  const Tail tail = logistic_tail(exp2(hn::Mul(hn::Mul(a, cubic), hn::Set(f32, -kTwice * kLog2E))));
  const V du = hn::MulAdd(square, hn::Set(f32, kTwice * 3 * 0.044715f), hn::Set(f32, kTwice));
  return {tail.value, hn::Mul(tail.slope, du)};
}

// exp(-by · |x|) for a number x.
HWY_INLINE V decay(V x, float by) {
  return exp2(hn::Mul(hn::Min(hn::Abs(x), hn::Set(f32, 128.0f)), hn::Set(f32, -by * kLog2E)));
}

inline constexpr float kQuickGelu = 1.702f;

// The tail of x and its |x|, cut where the tail has vanished so that no infinity meets a 0.
HWY_INLINE Tail tail_of(Activation kind, V x, V& a) {
  const bool logistic = kind == Activation::silu || kind == Activation::quick_gelu;
  a = hn::Min(hn::Abs(x), hn::Set(f32, logistic ? 128.0f : 16.0f));
  if (kind == Activation::gelu) return normal_tail(a);
  if (kind == Activation::gelu_tanh) return tanh_tail(a);
  if (kind == Activation::quick_gelu) {
    const Tail tail = logistic_tail(decay(x, kQuickGelu));
    return {tail.value, hn::Mul(tail.slope, hn::Set(f32, kQuickGelu))};
  }
  return logistic_tail(decay(x, 1.0f));
}

HWY_INLINE V keep_nan(V x, V y) { return hn::IfThenElse(hn::IsNaN(x), x, y); }

HWY_INLINE V activate(Activation kind, V x) {
  if (kind == Activation::none) return x;
  if (kind == Activation::tanh) return tanh(x);
  const M negative = hn::Lt(x, hn::Zero(f32));
  const V positive = hn::IfThenZeroElse(negative, x);
  if (kind == Activation::relu) return positive;
  if (kind == Activation::sigmoid) {
    const V e = decay(x, 1.0f), one = hn::Set(f32, 1.0f);
    return keep_nan(x, hn::Div(hn::IfThenElse(negative, e, one), hn::Add(one, e)));
  }
  V a;
  const Tail tail = tail_of(kind, x, a);
  return hn::Sub(positive, hn::Mul(a, tail.value));
}

// At a kink, x = 0 of relu: 0.
HWY_INLINE V activate_slope(Activation kind, V x) {
  const V one = hn::Set(f32, 1.0f);
  if (kind == Activation::none) return one;
  if (kind == Activation::relu) return keep_nan(x, hn::IfThenElseZero(hn::Gt(x, hn::Zero(f32)), one));
  if (kind == Activation::sigmoid) return keep_nan(x, logistic_tail(decay(x, 1.0f)).slope);
  if (kind == Activation::tanh) return keep_nan(x, hn::Mul(hn::Set(f32, 4.0f), logistic_tail(decay(x, 2.0f)).slope));
  V a;
  const Tail tail = tail_of(kind, x, a);
  const V e = hn::NegMulAdd(a, tail.slope, tail.value);
  return keep_nan(x, hn::IfThenElse(hn::Lt(x, hn::Zero(f32)), e, hn::Sub(one, e)));
}
