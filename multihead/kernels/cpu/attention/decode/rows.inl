// The rows of a cache in vectors, whose lanes run along the head width: their shape, their widening, sums of lanes.
#pragma once

#include "multihead/kernels/cpu/philox.inl"
#include "multihead/kernels/cpu/vector_math.inl"

namespace decode {

// A row of the cache in vectors: `full` units of kParts · kLanes elements and, where something is left, one unit that
// ends with the row and overlaps the one before. Rows narrower than a unit are copied into padded ones first.
struct RowShape {
  int64_t width = 0, unit = 0, full = 0;
  int64_t element = 0;  // bytes
  bool tail = false, narrow = false;
  bool fours =
      false;  // o in the order in which rows are interleaved: runs of four elements, dealt to the vectors in turn

  int64_t units() const { return full + tail; }
  int64_t padded() const { return units() * unit; }
  int64_t bytes() const { return width * element; }
};

// Rows of the cache at equal distances, in bytes. Addresses are computed, not looked up: through a table of row
// addresses the same loop reads a third less (Zen 4: 0.68 of plain read bandwidth from DRAM, 0.78 from L3).
struct Run {
  const char* row = nullptr;
  int64_t stride = 0, count = 0;

  Run slice(int64_t from, int64_t n) const { return {row + from * stride, stride, n}; }
};

// bf16 is widened without shuffles: the even elements of a register are its words shifted left, the odd ones its
// words with the lower half cleared. q and o are kept in that order.
template <class T>
constexpr int kParts = 1;
template <>
constexpr int kParts<bf16> = 2;

template <class T>
HWY_INLINE void load_parts(const T* p, V (&parts)[1]) {
  parts[0] = load_widened(p);
}
HWY_INLINE void load_parts(const bf16* p, V (&parts)[2]) {
  const hn::ScalableTag<uint16_t> u16;
  const hn::ScalableTag<uint32_t> u32;
  const auto both = hn::BitCast(u32, hn::LoadU(u16, &p->bits));
  parts[0] = hn::BitCast(f32, hn::ShiftLeft<16>(both));
  parts[1] = hn::BitCast(f32, hn::And(both, hn::Set(u32, 0xffff0000u)));
}

// sum + e · x of a key's vector and a query's.
template <class T>
struct Products {
  template <class Vector>
  static HWY_INLINE Vector add(Vector e, Vector x, Vector sum) {
    return hn::MulAdd(e, x, sum);
  }
};

// The vectors that T is widened into for N query rows. One row waits for the widening of f16, and Zen 4 does that in
// halves of 512 bits (59 GB/s of a row from L2 in one piece, 97 in two); several rows wait for their multiply-adds.
template <class T, int N>
struct Widened {
  using Tag = F;
};
#if HWY_TARGET <= HWY_AVX3
template <>
struct Widened<f16, 1> {
  using Tag = hn::Half<F>;
};
HWY_INLINE void load_parts(const f16* p, hn::Vec<hn::Half<F>> (&parts)[2]) {
  const hn::Half<F> half;
  const hn::Rebind<hwy::float16_t, hn::Half<F>> narrow;
  const auto* at = reinterpret_cast<const hwy::float16_t*>(p);
  parts[0] = hn::PromoteTo(half, hn::LoadU(narrow, at));
  parts[1] = hn::PromoteTo(half, hn::LoadU(narrow, at + kLanes / 2));
}
#endif
template <class T, int N>
using WideTag = typename Widened<T, N>::Tag;
template <class T, int N>
using Wide = hn::Vec<WideTag<T, N>>;
template <class T, int N>
constexpr int kWideLanes = static_cast<int>(hn::MaxLanes(WideTag<T, N>()));
// Vectors of a unit, and how many of them have sums of their own: the halves of what is one vector elsewhere, so that
// the bits are those of one.
template <class T, int N>
constexpr int kWideParts = kParts<T>* kLanes / kWideLanes<T, N>;
template <class T, int N>
constexpr int kChains = kWideParts<T, N> / kParts<T>;

constexpr int kMostUnit = 4 * kLanes;  // elements

inline int64_t parts_of(DType t) { return t == DType::bf16 ? 2 : 1; }

inline RowShape row_shape(int64_t width, int64_t element, int64_t unit) {
  RowShape s;
  s.width = width;
  s.element = element;
  s.unit = unit;
  s.narrow = width < unit;
  s.full = s.narrow ? 1 : width / unit;
  s.tail = !s.narrow && width % unit != 0;
  return s;
}
inline RowShape row_shape(int64_t width, DType t) { return row_shape(width, size_of(t), parts_of(t) * kLanes); }

// How many elements of a row stand in their own place in the order of q and o: the first ones.
inline int64_t in_place(const RowShape& s) { return s.unit == kLanes ? smaller(s.width, s.full * s.unit) : 0; }

// Where element d of a row stands in the order of q and o.
inline int64_t place_of(const RowShape& s, int64_t d) {
  const int64_t at = s.tail && d >= s.full * s.unit ? d - (s.width - s.unit) + s.full * s.unit : d;
  const int64_t lane = at % s.unit, vectors = s.unit / kLanes;
  if (s.fours) return at - lane + lane / 4 % vectors * kLanes + lane / 4 / vectors * 4 + lane % 4;
  if (vectors != 2) return at;
  return at - lane + (lane & 1) * kLanes + lane / 2;
}

// The sums of a vector's first and second halves, down to four lanes.
template <class D>
HWY_INLINE hn::Vec<hn::FixedTag<float, 4>> fold_to_four(D, hn::Vec<D> x) {
  if constexpr (hn::MaxLanes(D()) == 4) {
    return x;
  } else {
    const hn::Half<D> half;
    return fold_to_four(half, hn::Add(hn::LowerHalf(half, x), hn::UpperHalf(half, x)));
  }
}

// Four sums in each block of four lanes, one of each vector: of its lanes there.
template <class D>
HWY_INLINE hn::Vec<D> sums_in_blocks(D d, hn::Vec<D> a, hn::Vec<D> b, hn::Vec<D> c, hn::Vec<D> e) {
  const hn::RepartitionToWide<D> wide;
  const auto ab = hn::Add(hn::InterleaveLower(d, a, b), hn::InterleaveUpper(d, a, b));
  const auto ce = hn::Add(hn::InterleaveLower(d, c, e), hn::InterleaveUpper(d, c, e));
  const auto ab2 = hn::BitCast(wide, ab), ce2 = hn::BitCast(wide, ce);
  const auto low = hn::BitCast(d, hn::InterleaveLower(wide, ab2, ce2));
  const auto high = hn::BitCast(d, hn::InterleaveUpper(wide, ab2, ce2));
  return hn::Add(low, high);
}

constexpr int kRegisters = HWY_TARGET <= HWY_AVX3 || HWY_ARCH_ARM_A64 ? 32 : 16;

// Keys of which several query rows make one pass after the other: a quarter of a 32 KiB L1.
inline int64_t shared_keys(const RowShape& shape) { return larger(16, 8192 / shape.bytes() / 4 * 4); }

// The scores of a row, and the few past its end that four keys at a time overwrite.
constexpr int64_t kStrip = kDecodeBlock + 16;

// x *= factor for `count` rows.
inline void shrink_rows(const float* factor, int64_t count, int64_t width, float* x) {
  for (int64_t r = 0; r < count; ++r) {
    if (factor[r] == 1) continue;
    for (int64_t d = 0; d < width; d += kLanes) {
      hn::Store(hn::Mul(hn::Load(f32, x + r * width + d), hn::Set(f32, factor[r])), f32, x + r * width + d);
    }
  }
}

template <class T>
bool rows_finite(const RowShape& shape, const Run& rows) {
  const V zero = hn::Zero(f32);
  V sum = zero;
  for (int64_t j = 0; j < rows.count; ++j) {
    const T* v = reinterpret_cast<const T*>(rows.row + j * rows.stride);
    for (int64_t c = 0; c < shape.units(); ++c) {
      V e[kParts<T>];
      load_parts(shape.tail && c == shape.full ? v + shape.width - shape.unit : v + c * shape.unit, e);
#pragma GCC unroll 2
      for (int k = 0; k < kParts<T>; ++k) sum = hn::MulAdd(e[k], zero, sum);
    }
  }
  return hn::AllTrue(f32, hn::Eq(sum, zero));
}

}  // namespace decode
