// Activations of rows, plain and gated.
#pragma once

#include "multihead/kernels/cpu/rows/activation_math.inl"
#include "multihead/kernels/cpu/rows/vectors.inl"
#include "multihead/kernels/cpu/vector_math.inl"

// f(kind) with the kind known at compile time: body(Kind<Activation::gelu>{}) …
template <Activation K>
struct Kind {
  static constexpr Activation value = K;
};

template <class Body>
HWY_INLINE void with_kind(Activation kind, Body&& body) {
  switch (kind) {
    case Activation::none: return body(Kind<Activation::none>{});
    case Activation::relu: return body(Kind<Activation::relu>{});
    case Activation::gelu: return body(Kind<Activation::gelu>{});
    case Activation::gelu_tanh: return body(Kind<Activation::gelu_tanh>{});
    case Activation::silu: return body(Kind<Activation::silu>{});
    case Activation::sigmoid: return body(Kind<Activation::sigmoid>{});
    case Activation::tanh: return body(Kind<Activation::tanh>{});
    case Activation::quick_gelu: return body(Kind<Activation::quick_gelu>{});
  }
}

void activation_forward(const ActivationForwardArgs& args, Queue&) {
  with_float(args.type, [&]<class T>(Of<T>) {
    const T* x = static_cast<const T*>(args.x);
    T* y = static_cast<T*>(args.y);
    with_kind(args.kind, [&]<class K>(K) {
      for_pieces(args.count, [&](int64_t begin, int64_t count) {
        for_vectors(count, [&](int64_t at, auto extent) {
          put(activate(K::value, get(x + begin + at, extent)), y + begin + at, extent);
        });
      });
    });
  });
}

void activation_backward(const ActivationBackwardArgs& args, Queue&) {
  with_float(args.type, [&]<class T>(Of<T>) {
    const T *x = static_cast<const T*>(args.x), *dy = static_cast<const T*>(args.dy);
    T* dx = static_cast<T*>(args.dx);
    const V scale = hn::Set(f32, args.scale);
    with_kind(args.kind, [&]<class K>(K) {
      for_pieces(args.count, [&](int64_t begin, int64_t count) {
        for_vectors(count, [&](int64_t at, auto extent) {
          const V d = hn::Mul(get(dy + begin + at, extent), scale);
          put(hn::Mul(d, activate_slope(K::value, get(x + begin + at, extent))), dx + begin + at, extent);
        });
      });
    });
  });
}

// body(type, kind, row) with both known at compile time.
template <class Body>
inline void for_gated_rows(const View& x, Activation kind, Body&& body) {
  with_float(x.dtype, [&]<class T>(Of<T> type) {
    with_kind(kind, [&](auto known) { for_rows(x.size[0], x.size[1], [&](int64_t row) { body(type, known, row); }); });
  });
}

void gated_forward(const GatedForwardArgs& args, Queue&) {
  for_gated_rows(args.x, args.kind, [&]<class T, class K>(Of<T>, K, int64_t row) {
    const int64_t n = args.y.size[1];
    const T *a = row_of<T>(args.x, row), *b = a + n;
    T* y = row_of<T>(args.y, row);
    for_vectors(n, [&](int64_t at, auto extent) {
      put(hn::Mul(activate(K::value, get(a + at, extent)), get(b + at, extent)), y + at, extent);
    });
  });
}

void gated_backward(const GatedBackwardArgs& args, Queue&) {
  for_gated_rows(args.x, args.kind, [&]<class T, class K>(Of<T>, K, int64_t row) {
    const int64_t n = args.dy.size[1];
    const T *a = row_of<T>(args.x, row), *b = a + n, *dy = row_of<T>(args.dy, row);
    T *da = row_of<T>(args.dx, row), *db = da + n;
    for_vectors(n, [&](int64_t at, auto extent) {
      const V d = get(dy + at, extent), x = get(a + at, extent);
      put(hn::Mul(hn::Mul(d, get(b + at, extent)), activate_slope(K::value, x)), da + at, extent);
      put(hn::Mul(d, activate(K::value, x)), db + at, extent);
    });
  });
}
