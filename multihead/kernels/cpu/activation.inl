// Activations of rows, plain and gated.

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
  }
}

// One type and one kind, for each row.
template <class Body>
inline void for_activated_rows(const View& x, Activation kind, Body&& body) {
  with_float(x.dtype, [&]<class T>(Of<T> type) {
    with_kind(kind, [&](auto known) { for_rows(x.size[0], x.size[1], [&](int64_t row) { body(type, known, row); }); });
  });
}

void activation_forward(const ActivationForwardArgs& args) {
  for_activated_rows(args.x, args.kind, [&]<class T, class K>(Of<T>, K, int64_t row) {
    const T* x = row_of<T>(args.x, row);
    T* y = row_of<T>(args.y, row);
    for_vectors(args.x.size[1], [&](int64_t at, auto extent) { put(activate(K::value, get(x + at, extent)), y + at, extent); });
  });
}

void activation_backward(const ActivationBackwardArgs& args) {
  for_activated_rows(args.x, args.kind, [&]<class T, class K>(Of<T>, K, int64_t row) {
    const T *x = row_of<T>(args.x, row), *dy = row_of<T>(args.dy, row);
    T* dx = row_of<T>(args.dx, row);
    for_vectors(args.x.size[1], [&](int64_t at, auto extent) {
      put(hn::Mul(get(dy + at, extent), activate_slope(K::value, get(x + at, extent))), dx + at, extent);
    });
  });
}

void gated_forward(const GatedForwardArgs& args) {
  for_activated_rows(args.x, args.kind, [&]<class T, class K>(Of<T>, K, int64_t row) {
    const int64_t n = args.y.size[1];
    const T *a = row_of<T>(args.x, row), *b = a + n;
    T* y = row_of<T>(args.y, row);
    for_vectors(n, [&](int64_t at, auto extent) {
      put(hn::Mul(activate(K::value, get(a + at, extent)), get(b + at, extent)), y + at, extent);
    });
  });
}

void gated_backward(const GatedBackwardArgs& args) {
  for_activated_rows(args.x, args.kind, [&]<class T, class K>(Of<T>, K, int64_t row) {
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
