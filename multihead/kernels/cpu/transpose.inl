// Rows into columns and back: queries into lanes, outputs out of them; rows of any type into f32.
#pragma once

#include "multihead/kernels/cpu/vector_math.inl"

// load_blocks: lanes 4b … 4b+3 come from at[4b] + c; store_blocks puts them there.
#if HWY_TARGET <= HWY_AVX3
HWY_INLINE V load_blocks(const float* const* at, int64_t c) {
  const hn::CappedTag<float, 4> four;
  const hn::CappedTag<float, 8> eight;
  return hn::Combine(f32, hn::Combine(eight, hn::LoadU(four, at[12] + c), hn::LoadU(four, at[8] + c)),
                     hn::Combine(eight, hn::LoadU(four, at[4] + c), hn::LoadU(four, at[0] + c)));
}
HWY_INLINE void store_blocks(V x, float* const* at, int64_t c) {
  const hn::CappedTag<float, 4> four;
  const hn::CappedTag<float, 8> eight;
  const auto low = hn::LowerHalf(eight, x), high = hn::UpperHalf(eight, x);
  hn::StoreU(hn::LowerHalf(four, low), four, at[0] + c);
  hn::StoreU(hn::UpperHalf(four, low), four, at[4] + c);
  hn::StoreU(hn::LowerHalf(four, high), four, at[8] + c);
  hn::StoreU(hn::UpperHalf(four, high), four, at[12] + c);
}
#elif HWY_TARGET == HWY_AVX2
HWY_INLINE V load_blocks(const float* const* at, int64_t c) {
  const hn::CappedTag<float, 4> four;
  return hn::Combine(f32, hn::LoadU(four, at[4] + c), hn::LoadU(four, at[0] + c));
}
HWY_INLINE void store_blocks(V x, float* const* at, int64_t c) {
  const hn::CappedTag<float, 4> four;
  hn::StoreU(hn::LowerHalf(four, x), four, at[0] + c);
  hn::StoreU(hn::UpperHalf(four, x), four, at[4] + c);
}
#else
HWY_INLINE V load_blocks(const float* const* at, int64_t c) { return hn::LoadU(f32, at[0] + c); }
HWY_INLINE void store_blocks(V x, float* const* at, int64_t c) { hn::StoreU(x, f32, at[0] + c); }
#endif

// Transposes the 4 × 4 squares that stand in the 128-bit blocks of v.
HWY_INLINE void transpose_squares(V (&v)[4]) {
  const hn::ScalableTag<double> f64;
  const auto a = hn::BitCast(f64, hn::InterleaveLower(f32, v[0], v[1]));
  const auto b = hn::BitCast(f64, hn::InterleaveUpper(f32, v[0], v[1]));
  const auto c = hn::BitCast(f64, hn::InterleaveLower(f32, v[2], v[3]));
  const auto d = hn::BitCast(f64, hn::InterleaveUpper(f32, v[2], v[3]));
  v[0] = hn::BitCast(f32, hn::InterleaveLower(f64, a, c));
  v[1] = hn::BitCast(f32, hn::InterleaveUpper(f64, a, c));
  v[2] = hn::BitCast(f32, hn::InterleaveLower(f64, b, d));
  v[3] = hn::BitCast(f32, hn::InterleaveUpper(f64, b, d));
}

// columns[c · stride + r] = rows[r][c] · factor[r] for kLanes rows; a missing row is given as a row of zeros.
inline void rows_to_columns(const float* const* rows, int64_t width, V factor, float* columns, int64_t stride) {
  int64_t c = 0;
  for (; c + 4 <= width; c += 4) {
    V v[4] = {load_blocks(rows, c), load_blocks(rows + 1, c), load_blocks(rows + 2, c), load_blocks(rows + 3, c)};
    transpose_squares(v);
    for (int n = 0; n < 4; ++n) hn::StoreU(hn::Mul(v[n], factor), f32, columns + (c + n) * stride);
  }
  HWY_ALIGN float scale[kLanes];
  hn::Store(factor, f32, scale);
  for (; c < width; ++c)
    for (int r = 0; r < kLanes; ++r) columns[c * stride + r] = rows[r][c] * scale[r];
}

// rows[r][c] = columns[c · stride + r] · factor[r] for kLanes rows; every row pointer must be writable. -0 becomes +0:
// which of the two a sum ends in depends on dropped pairs.
inline void columns_to_rows(const float* columns, int64_t stride, int64_t width, V factor, float* const* rows) {
  int64_t c = 0;
  for (; c + 4 <= width; c += 4) {
    V v[4];
    for (int n = 0; n < 4; ++n)
      v[n] = hn::Add(hn::Mul(hn::LoadU(f32, columns + (c + n) * stride), factor), hn::Zero(f32));
    transpose_squares(v);
    for (int n = 0; n < 4; ++n) store_blocks(v[n], rows + n, c);
  }
  HWY_ALIGN float scale[kLanes];
  hn::Store(factor, f32, scale);
  for (; c < width; ++c)
    for (int r = 0; r < kLanes; ++r) rows[r][c] = columns[c * stride + r] * scale[r] + 0.0f;
}

// to[c] = from[c] · factor.
template <class T>
HWY_INLINE void widen_row(const T* from, int64_t width, float factor, float* to) {
  const V scale = hn::Set(f32, factor);
  int64_t c = 0;
  for (; c + kLanes <= width; c += kLanes) hn::StoreU(hn::Mul(load_widened(from + c), scale), f32, to + c);
  for (; c < width; ++c) to[c] = widen(from[c]) * factor;
}

// to[c] = from[c] · factor; -0 becomes +0.
template <class T>
HWY_INLINE void narrow_row(const float* from, int64_t width, float factor, T* to) {
  const V scale = hn::Set(f32, factor);
  int64_t c = 0;
  for (; c + kLanes <= width; c += kLanes)
    store_narrowed(hn::Add(hn::Mul(hn::LoadU(f32, from + c), scale), hn::Zero(f32)), to + c);
  for (; c < width; ++c) narrow(from[c] * factor + 0.0f, to + c);
}

inline void widen_row(DType type, const void* from, int64_t width, float factor, float* to) {
  switch (type) {
    case DType::bf16: return widen_row(static_cast<const bf16*>(from), width, factor, to);
    case DType::f16: return widen_row(static_cast<const f16*>(from), width, factor, to);
    case DType::i8: return widen_row(static_cast<const int8_t*>(from), width, factor, to);
    default: return widen_row(static_cast<const float*>(from), width, factor, to);
  }
}

inline void narrow_row(DType type, const float* from, int64_t width, void* to, float factor = 1) {
  switch (type) {
    case DType::bf16: return narrow_row(from, width, factor, static_cast<bf16*>(to));
    case DType::f16: return narrow_row(from, width, factor, static_cast<f16*>(to));
    default: return narrow_row(from, width, factor, static_cast<float*>(to));
  }
}
