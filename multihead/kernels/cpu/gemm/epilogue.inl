// What follows the sums of a matrix product: scale, bias, activation, residual, gate, rounding to the type of y.
#pragma once

#include "multihead/kernels/cpu/gemm/pack.inl"
#include "multihead/kernels/cpu/rows/activation_math.inl"
#include "multihead/kernels/cpu/vector_math.inl"

// x where the gate lets it pass.
template <class Y>
HWY_INLINE V gated(V x, const Y* gate) {
  return hn::IfThenElseZero(hn::Gt(load_widened(gate), hn::Zero(f32)), x);
}

// What follows the sums in columns [column, column + columns), at most kPanelWidth of them.
template <class Y>
struct Finish {
  const GemmArgs& args;
  int64_t column = 0, columns = 0;
  alignas(64) float bias[kPanelWidth] = {};

  explicit Finish(const GemmArgs& of) : args(of) {}
  Finish(const GemmArgs& of, int64_t first, int64_t count) : Finish(of) { begin(first, count); }

  void begin(int64_t first, int64_t count) {
    column = first;
    columns = count;
    if (args.bias) memcpy(bias, static_cast<const float*>(args.bias.data) + column, static_cast<size_t>(columns) * 4);
  }

  HWY_INLINE void row(const float* sums, int64_t row) const {
    const Y *residual = static_cast<const Y*>(args.residual.data), *gate = static_cast<const Y*>(args.gate.data);
    if (residual) residual += row * args.residual.stride[0] + column;
    if (gate) gate += row * args.gate.stride[0] + column;
    Y* y = static_cast<Y*>(args.y.data) + row * args.y.stride[0] + column;
    const V scale = hn::Set(f32, args.scale);
    for (int64_t c = 0; c < columns; c += kLanes) {
      V x = hn::MulAdd(hn::LoadU(f32, sums + c), scale, hn::Load(f32, bias + c));
      x = activate(args.activation, x);
      if (columns - c >= kLanes) {
        if (residual) x = hn::Add(x, load_widened(residual + c));
        if (gate) x = gated(x, gate + c);
        store_narrowed(x, y + c);
        continue;
      }
      alignas(64) Y lanes[kLanes] = {};
      const size_t bytes = static_cast<size_t>(columns - c) * sizeof(Y);
      if (residual) {
        memcpy(lanes, residual + c, bytes);
        x = hn::Add(x, load_widened(lanes));
      }
      if (gate) {
        memcpy(lanes, gate + c, bytes);
        x = gated(x, lanes);
      }
      store_narrowed(x, lanes);
      memcpy(y + c, lanes, bytes);
    }
  }
};

// N whole vectors of columns, no residual, no activation but relu: what most products of a training step end with, with
// nothing decided for each vector.
template <class Y, int N, bool kGated>
HWY_INLINE void finish_plain(const GemmArgs& args, const float* sums, int64_t width, int64_t row, int64_t rows,
                             int64_t column) {
  const V scale = hn::Set(f32, args.scale), least = hn::Set(f32, args.activation == Activation::relu ? 0.0f : kNone);
  V bias[N];
#pragma GCC unroll 3
  for (int n = 0; n < N; ++n)
    bias[n] =
        args.bias ? hn::LoadU(f32, static_cast<const float*>(args.bias.data) + column + n * kLanes) : hn::Zero(f32);
  Y* y = static_cast<Y*>(args.y.data) + row * args.y.stride[0] + column;
  const Y* gate = kGated ? static_cast<const Y*>(args.gate.data) + row * args.gate.stride[0] + column : nullptr;
  for (int64_t r = 0; r < rows; ++r, sums += width, y += args.y.stride[0])
#pragma GCC unroll 3
    for (int n = 0; n < N; ++n) {
      V x = hn::MulAdd(hn::LoadU(f32, sums + n * kLanes), scale, bias[n]);
      x = hn::IfThenZeroElse(hn::Lt(x, least), x);
      if constexpr (kGated) x = gated(x, gate + r * args.gate.stride[0] + n * kLanes);
      store_narrowed(x, y + n * kLanes);
    }
}

// Rows [row, row + rows) and columns [column, column + columns) of y out of sums that lie `width` apart.
template <class Y>
void finish_rows(const GemmArgs& args, const float* sums, int64_t width, int64_t row, int64_t rows, int64_t column,
                 int64_t columns) {
  const bool plain = !args.residual && (args.activation == Activation::none || args.activation == Activation::relu);
  const auto finish_as = [&]<int N>() HWY_ATTR {
    return args.gate ? finish_plain<Y, N, true>(args, sums, width, row, rows, column)
                     : finish_plain<Y, N, false>(args, sums, width, row, rows, column);
  };
  if (plain && columns == 3 * kLanes) return finish_as.template operator()<3>();
  if (plain && columns == 2 * kLanes) return finish_as.template operator()<2>();
  const Finish<Y> finish(args, column, columns);
  for (int64_t r = 0; r < rows; ++r) finish.row(sums + r * width, row + r);
}

inline void finish_panel(const GemmArgs& args, const float* sums, int64_t width, int64_t row, int64_t rows,
                         int64_t column, int64_t columns) {
  const auto finish = args.y.dtype == DType::bf16 ? finish_rows<bf16> : finish_rows<float>;
  finish(args, sums, width, row, rows, column, columns);
}
