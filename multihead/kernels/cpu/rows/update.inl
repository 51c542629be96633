// What an optimiser does to flat arrays: one pass over memory each.
#pragma once

#include "multihead/kernels/cpu/rows/activation_math.inl"
#include "multihead/kernels/cpu/rows/vectors.inl"
#include "multihead/kernels/cpu/vector_math.inl"

template <class G>
inline void adamw_piece(const AdamwArgs& args, int64_t begin, int64_t count) {
  float *w = args.w + begin, *m = args.m + begin, *v = args.v + begin;
  const G* g = static_cast<const G*>(args.g) + begin;
  bf16* copy = args.copy ? args.copy + begin : nullptr;
  const V beta1 = hn::Set(f32, args.beta1), beta2 = hn::Set(f32, args.beta2), eps = hn::Set(f32, args.eps);
  const V rest1 = hn::Set(f32, 1 - args.beta1), rest2 = hn::Set(f32, 1 - args.beta2);
  const V shrink = hn::Set(f32, 1 - args.rate * args.decay), step = hn::Set(f32, args.rate / args.correction1);
  const V unbias = hn::Set(f32, 1 / sqrtf(args.correction2)), scale = hn::Set(f32, args.gradient_scale);
  for_vectors(count, [&](int64_t at, auto extent) {
    const V d = hn::Mul(get(g + at, extent), scale);
    const V first = hn::MulAdd(beta1, get(m + at, extent), hn::Mul(rest1, d));
    const V second = hn::MulAdd(beta2, get(v + at, extent), hn::Mul(rest2, hn::Mul(d, d)));
    const V move = hn::Div(first, hn::MulAdd(hn::Sqrt(second), unbias, eps));
    const V next = hn::NegMulAdd(step, move, hn::Mul(get(w + at, extent), shrink));
    put(first, m + at, extent);
    put(second, v + at, extent);
    put(next, w + at, extent);
    if (copy) put(next, copy + at, extent);
  });
}

void adamw(const AdamwArgs& args, Queue&) {
  with_float(args.g_type, [&]<class G>(Of<G>) {
    for_pieces(args.count, [&](int64_t begin, int64_t count) { adamw_piece<G>(args, begin, count); });
  });
}

template <class T>
inline double squares_of(const T* x, int64_t count) {
  const hn::ScalableTag<double> f64;
  const hn::Rebind<float, decltype(f64)> half;
  constexpr int64_t kHalf = static_cast<int64_t>(hn::MaxLanes(hn::ScalableTag<double>()));
  auto low = hn::Zero(f64), high = hn::Zero(f64);
  for_vectors(count, [&](int64_t at, auto extent) {
    HWY_ALIGN float lanes[kLanes];
    hn::Store(get(x + at, extent), f32, lanes);
    const auto a = hn::PromoteTo(f64, hn::Load(half, lanes)), b = hn::PromoteTo(f64, hn::Load(half, lanes + kHalf));
    low = hn::MulAdd(a, a, low);
    high = hn::MulAdd(b, b, high);
  });
  return hn::GetLane(hn::SumOfLanes(f64, hn::Add(low, high)));
}

void sum_of_squares(const SumOfSquaresArgs& args, Queue&) {
  Scratch scratch;
  const int64_t pieces = blocks_of(args.count, kElementsPerTask);
  double* parts = scratch.take<double>(pieces);
  with_float(args.x_type, [&]<class T>(Of<T>) {
    const T* x = static_cast<const T*>(args.x);
    for_pieces(args.count,
               [&](int64_t begin, int64_t count) { parts[begin / kElementsPerTask] = squares_of(x + begin, count); });
  });
  *args.sum = 0;
  for (int64_t n = 0; n < pieces; ++n) *args.sum += parts[n];
}

void lerp(const LerpArgs& args, Queue&) {
  const V part = hn::Set(f32, args.part);
  for_pieces(args.count, [&](int64_t begin, int64_t count) {
    for_vectors(count, [&](int64_t at, auto extent) {
      float* y = args.y + begin + at;
      const V was = get(y, extent);
      put(hn::MulAdd(part, hn::Sub(get(args.x + begin + at, extent), was), was), y, extent);
    });
  });
}
