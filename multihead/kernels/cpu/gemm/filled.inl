// Products of f32 with an operand that is two fifths zeros or more, as relu and dropout leave it: the zeros are left
// out.
//
// The order of every element's sum is that of gemm.inl, and a product with 0 changes no sum but the sign of one that is
// 0, which is lost where the bias is added: y has the bits that the tiles give it. Infinities and NaN times 0 are not
// 0: where the other operand holds one, the tiles are taken.
#pragma once

#include "multihead/kernels/cpu/gemm/epilogue.inl"
#include "multihead/kernels/cpu/gemm/pack.inl"
#include "multihead/kernels/cpu/gemm/panels.inl"
#include "multihead/kernels/cpu/gemm/stream.inl"
#include "multihead/kernels/cpu/vector_math.inl"

// With 8 lanes, where no instruction gathers what a mask keeps, it took longer (Zen 4, AVX2, 80 of 100 elements 0: the
// same time as tiles; 55: 1.3 times).
constexpr bool kLeavesZerosOut = kLanes == 16;
// Rows of a task: their elements that are not 0 wait in the second cache.
constexpr int64_t kFilledRows = 32;
// Steps of k at a time: those of two panels stay in the first cache (24 KB).
constexpr int64_t kFilledSpan = 64;
static_assert(kBlockDepth % kFilledSpan == 0);

// What is left of some rows: span after span, in each row after row, the values and their steps within the span.
struct FilledRows {
  float* values;
  int32_t* steps;
  int32_t* begins;  // of row r in span s at [s · rows + r], and the end of all
  int64_t rows, spans;
};

// Of `depth` elements, behind the `count` that are there; how many that makes.
HWY_INLINE int64_t gather_span(const float* x, int64_t depth, float* values, int32_t* steps, int64_t count) {
  for (int64_t k = 0; k < depth; k += kLanes) {
    const V each = load_some(x + k, depth - k);
    const M filled = hn::Not(hn::Eq(each, hn::Zero(f32)));  // Ne is false for NaN on x86
    // A store past the last is overwritten by the next: there is room for a vector behind all.
    hn::StoreU(hn::Compress(each, filled), f32, values + count);
    const V places = hn::BitCast(f32, hn::Iota(i32, static_cast<int32_t>(k)));
    hn::StoreU(hn::BitCast(i32, hn::Compress(places, filled)), i32, steps + count);
    count += static_cast<int64_t>(hn::CountTrue(f32, filled));
  }
  return count;
}

// Rows from `row` on, which have unit stride along k or along rows: turned a block of k at a time in the latter case.
inline void gather_rows(const View& a, int64_t row, const FilledRows& out) {
  Scratch scratch;
  const bool lying = a.stride[1] == 1;
  float* turned = lying ? nullptr : scratch.take<float>(out.rows * kBlockDepth);
  int32_t* begins = out.begins;
  *begins = 0;
  for (int64_t begin = 0; begin < a.size[1]; begin += kBlockDepth) {
    const int64_t depth = smaller(kBlockDepth, a.size[1] - begin);
    const float* from = static_cast<const float*>(a.data) + row * a.stride[0] + begin * a.stride[1];
    if (!lying) {
      pack_words(Lines<float>{from, 1, a.stride[1]}, out.rows, depth, kBlockDepth, reinterpret_cast<uint32_t*>(turned));
      from = turned;
    }
    for (int64_t k = 0; k < depth; k += kFilledSpan)
      for (int64_t r = 0; r < out.rows; ++r, ++begins) {
        const float* x = from + r * (lying ? a.stride[0] : kBlockDepth) + k;
        for (int64_t e = 0; e < kFilledSpan; e += 16) __builtin_prefetch(x + kFilledSpan + e);
        begins[1] =
            static_cast<int32_t>(gather_span(x, smaller(kFilledSpan, depth - k), out.values, out.steps, begins[0]));
      }
  }
}

// Where the sums of a row in a span come from and go to.
struct SpanSums {
  const float* from;  // the sums of the block so far, or null: 0
  const float* onto;  // where the block ends, the sums of the blocks before it, or null
  float* to;
};

// P panels of N vectors: a step of the first at w, of the next one `apart` floats from there.
template <int P, int N>
HWY_INLINE void multiply_span(const float* HWY_RESTRICT values, const int32_t* HWY_RESTRICT steps, int64_t count,
                              const float* HWY_RESTRICT w, int64_t apart, const SpanSums& sums) {
  V acc[P * N];
#pragma GCC unroll 8
  for (int n = 0; n < P * N; ++n) acc[n] = sums.from ? hn::Load(f32, sums.from + n * kLanes) : hn::Zero(f32);
  for (int64_t i = 0; i < count; ++i) {
    const float* at = w + int64_t{steps[i]} * (N * kLanes);
    const V value = hn::Set(f32, values[i]);
#pragma GCC unroll 8
    for (int n = 0; n < P * N; ++n)
      acc[n] = hn::MulAdd(value, hn::LoadU(f32, at + n / N * apart + n % N * kLanes), acc[n]);
  }
#pragma GCC unroll 8
  for (int n = 0; n < P * N; ++n)
    hn::Store(sums.onto ? hn::Add(hn::Load(f32, sums.onto + n * kLanes), acc[n]) : acc[n], f32, sums.to + n * kLanes);
}

// All rows times P panels of N vectors: sums[r · P · N · kLanes + column]; `block` is room for as many.
template <int P, int N>
HWY_NOINLINE void multiply_filled(const FilledRows& a, int64_t k, const float* w, int64_t apart, float* sums,
                                  float* block) {
  constexpr int64_t kWidth = P * N * kLanes;
  const int32_t* range = a.begins;
  for (int64_t begin = 0; begin < k; begin += kFilledSpan) {
    const float* at = w + begin * N * kLanes;
    const bool first = begin < kBlockDepth, starts = begin % kBlockDepth == 0;
    const bool ends = begin + kFilledSpan >= k || (begin + kFilledSpan) % kBlockDepth == 0;
    for (int64_t r = 0; r < a.rows; ++r, ++range) {
      // The next span of w comes near on the way, some of its steps with each row.
      for (int n = 0; n < P * N; ++n)
        __builtin_prefetch(at + n / N * apart + ((kFilledSpan + r) * N + n % N) * kLanes, 0, 2);
      float *total = sums + r * kWidth, *part = first ? total : block + r * kWidth;
      multiply_span<P, N>(a.values + range[0], a.steps + range[0], range[1] - range[0], at, apart,
                          {starts ? nullptr : part, !first && ends ? total : nullptr, ends ? total : part});
    }
  }
}

using MultiplyFilled = void (*)(const FilledRows&, int64_t, const float*, int64_t, float*, float*);

inline MultiplyFilled multiply_filled_for(int64_t panels, int64_t vectors) {
  if (panels == 2)
    return vectors == 3 ? multiply_filled<2, 3> : vectors == 2 ? multiply_filled<2, 2> : multiply_filled<2, 1>;
  return vectors == 3 ? multiply_filled<1, 3> : vectors == 2 ? multiply_filled<1, 2> : multiply_filled<1, 1>;
}

// finish_panel where y has unit stride along rows, and nothing but the scale follows the sums.
inline void finish_turned(const GemmArgs& args, float* sums, int64_t width, int64_t row, int64_t rows, int64_t column,
                          int64_t columns) {
  const V scale = hn::Set(f32, args.scale);
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; c += kLanes) {
      float* at = sums + r * width + c;
      hn::Store(hn::MulAdd(hn::Load(f32, at), scale, hn::Zero(f32)), f32, at);
    }
  float* y = static_cast<float*>(args.y.data) + column * args.y.stride[1] + row;
  pack_rows(Lines<float>{sums, 1, width}, columns, rows, args.y.stride[1], reinterpret_cast<uint32_t*>(y));
}

// Rows [row, row + rows) of y.
inline void multiply_filled_rows(const GemmArgs& args, int64_t row, int64_t rows, const Panels& panels,
                                 const float* w) {
  Scratch scratch;
  const int64_t spans = (args.k + kFilledSpan - 1) / kFilledSpan, most = rows * args.k + kLanes;
  const FilledRows a{scratch.take<float>(most), scratch.take<int32_t>(most), scratch.take<int32_t>(rows * spans + 1),
                     rows, spans};
  gather_rows(args.a, row, a);
  float* sums = scratch.take<float>(rows * 2 * kPanelWidth);
  float* block = scratch.take<float>(rows * 2 * kPanelWidth);
  for (int64_t panel = 0, taken; panel < panels.count(); panel += taken) {
    const int64_t width = panels.width(panel);
    taken = panel + 1 < panels.count() && panels.width(panel + 1) == width ? 2 : 1;
    const auto multiply = multiply_filled_for(taken, width / kLanes);
    multiply(a, args.k, w + panels.offset(panel), panels.offset(panel + 1) - panels.offset(panel), sums, block);
    for (int64_t p = 0; p < taken; ++p) {
      const int64_t column = panels.column(panel + p), columns = panels.columns(panel + p);
      if (args.y.stride[1] == 1) {
        finish_panel(args, sums + p * width, taken * width, row, rows, column, columns);
      } else {
        finish_turned(args, sums + p * width, taken * width, row, rows, column, columns);
      }
    }
  }
}

// Whether zeros are worth leaving out: two fifths of 512 elements all over x are (Zen 4, 1024 × 1024 × 256: with 45 of
// 100 elements 0 it takes 0.87 of the tiles' time, with 55 0.76, with 80 0.45).
inline bool is_half_empty(const View& x) {
  constexpr int64_t kPlaces = 32, kRun = 16;
  if (x.stride[0] != 1 && x.stride[1] != 1) return false;
  const int along = x.stride[1] == 1 ? 1 : 0, across = 1 - along;
  if (x.size[along] < kPlaces * kRun || x.size[across] < kPlaces) return false;
  int64_t zeros = 0;
  for (int64_t n = 0; n < kPlaces; ++n) {
    const float* at = static_cast<const float*>(x.data) + n * (x.size[across] / kPlaces) * x.stride[across] +
                      n * 7 % kPlaces * (x.size[along] / kPlaces);
    for (int64_t e = 0; e < kRun; ++e) zeros += at[e] == 0;
  }
  return 5 * zeros >= 2 * kPlaces * kRun;
}

// The product by rows of a without their zeros; false where it was left undone.
inline bool multiply_without_zeros(const GemmArgs& args) {
  const int64_t m = args.a.size[0];
  const Panels panels{args.n, args.k};
  if (m < 4 * kFilledRows || args.n < 2 * kPanelWidth || panels.words() * 4 > kPackBytes) return false;
  Scratch scratch;
  const auto* w = static_cast<const float*>(args.packed);
  if (!w) {
    uint32_t* packed = scratch.take<uint32_t>(panels.words());
    pack_panels<float>(args.w, args.k, panels, 0, panels.count(), packed);
    w = reinterpret_cast<const float*>(packed);
  }
  bool* finite = scratch.take<bool>(panels.count());
  parallel_for(panels.count(), [&](int64_t panel) {
    finite[panel] = all_finite(w + panels.offset(panel), 0, 1, panels.width(panel) * args.k);
  });
  for (int64_t panel = 0; panel < panels.count(); ++panel)
    if (!finite[panel]) return false;
  parallel_near((m + kFilledRows - 1) / kFilledRows, [&](int64_t task) {
    const int64_t row = task * kFilledRows;
    multiply_filled_rows(args, row, smaller(kFilledRows, m - row), panels, w);
  });
  return true;
}

inline View transposed(const View& x) {
  View out = x;
  for (int axis = 0; axis < 2; ++axis) {
    out.size[axis] = x.size[1 - axis];
    out.stride[axis] = x.stride[1 - axis];
  }
  return out;
}

// The product, where a or w is one for this file; false where it was left undone. By the zeros of w: yᵀ = wᵀ · aᵀ.
inline bool gemm_filled(const GemmArgs& args) {
  if (smaller(args.a.size[0], args.n) < 2 * kPanelWidth || args.k < kBlockDepth) return false;
  if (is_half_empty(args.a)) return multiply_without_zeros(args);
  const bool plain =
      !args.bias && !args.residual && !args.gate && args.activation == Activation::none && args.y.dtype == DType::f32;
  if (args.packed || !plain || !is_half_empty(args.w)) return false;
  GemmArgs turned = args;
  turned.a = transposed(args.w);
  turned.w = transposed(args.a);
  turned.y = transposed(args.y);
  turned.n = args.a.size[0];
  return multiply_without_zeros(turned);
}
