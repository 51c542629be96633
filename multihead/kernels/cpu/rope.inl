// Rotary positions: pairs turned by the angles of a table.

// Halves side by side: the pair of n is n + pairs.
template <class T>
HWY_INLINE void turn_halves(const T* x, T* y, const float* cos, const float* sin, int64_t pairs, V sign) {
  for_vectors(pairs, [&](int64_t at, auto extent) {
    const V a = get(x + at, extent), b = get(x + pairs + at, extent);
    const V c = get(cos + at, extent), s = hn::Mul(get(sin + at, extent), sign);
    put(hn::NegMulAdd(b, s, hn::Mul(a, c)), y + at, extent);
    put(hn::MulAdd(a, s, hn::Mul(b, c)), y + pairs + at, extent);
  });
}

// Neighbours: lanes 2n and 2n + 1.
template <class T>
HWY_INLINE void turn_neighbours(const T* x, T* y, const float* cos, const float* sin, int64_t pairs, float sign) {
  int64_t n = 0;
  const V alternating = hn::Mul(hn::Set(f32, sign), hn::OddEven(hn::Set(f32, 1.0f), hn::Set(f32, -1.0f)));
  for (; 2 * n + kLanes <= 2 * pairs; n += kLanes / 2) {
    const V both = load_widened(x + 2 * n);
    const hn::Half<F> half;
    const auto c = hn::LoadU(half, cos + n), s = hn::LoadU(half, sin + n);
    const V c2 = hn::Combine(f32, hn::InterleaveUpper(half, c, c), hn::InterleaveLower(half, c, c));
    const V s2 = hn::Combine(f32, hn::InterleaveUpper(half, s, s), hn::InterleaveLower(half, s, s));
    store_narrowed(hn::MulAdd(hn::Shuffle2301(both), hn::Mul(s2, alternating), hn::Mul(both, c2)), y + 2 * n);
  }
  for (; n < pairs; ++n) {
    const float a = widen(x[2 * n]), b = widen(x[2 * n + 1]), c = cos[n], s = sin[n] * sign;
    narrow(a * c - b * s, y + 2 * n);
    narrow(b * c + a * s, y + 2 * n + 1);
  }
}

void rope(const RopeArgs& args) {
  const int64_t heads = args.x.size[1], width = args.x.size[2], pairs = args.pairs;
  const float sign = args.backwards ? -1.0f : 1.0f;
  with_float(args.x.dtype, [&]<class T>(Of<T>) {
    for_rows(args.x.size[0], heads * width, [&](int64_t n) {
      const float *cos = args.cos + args.positions[n] * pairs, *sin = args.sin + args.positions[n] * pairs;
      for (int64_t h = 0; h < heads; ++h) {
        const T* x = static_cast<const T*>(args.x.data) + n * args.x.stride[0] + h * args.x.stride[1];
        T* y = static_cast<T*>(args.y.data) + n * args.y.stride[0] + h * args.y.stride[1];
        if (args.interleaved) {
          turn_neighbours(x, y, cos, sin, pairs, sign);
        } else {
          turn_halves(x, y, cos, sin, pairs, hn::Set(f32, sign));
        }
        if (2 * pairs < width) memcpy(y + 2 * pairs, x + 2 * pairs, static_cast<size_t>(width - 2 * pairs) * sizeof(T));
      }
    });
  });
}
