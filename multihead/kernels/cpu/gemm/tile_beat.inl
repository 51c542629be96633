// What runs beside the products on tiles: the next block of w is asked for, the next rows of a are brought near, and
// rows whose sums are whole go to y.
#pragma once

#include "multihead/kernels/cpu/gemm/epilogue.inl"
#include "multihead/kernels/cpu/gemm/tile_operands.inl"
#include "multihead/kernels/cpu/tile_pack.inl"
#include "multihead/kernels/cpu/vector_math.inl"

// 32 columns in the type of y, as store_narrowed rounds them.
HWY_INLINE void store_columns(__m512 low, __m512 high, float* to) {
  _mm512_storeu_ps(to, low);
  _mm512_storeu_ps(to + 16, high);
}
HWY_INLINE void store_columns(__m512 low, __m512 high, bf16* to) {
  alignas(64) static constexpr uint16_t kUpperHalves[32] = {1,  3,  5,  7,  9,  11, 13, 15, 17, 19, 21,
                                                            23, 25, 27, 29, 31, 33, 35, 37, 39, 41, 43,
                                                            45, 47, 49, 51, 53, 55, 57, 59, 61, 63};
  const __m512i a = _mm512_castps_si512(round_to_bf16(low)), b = _mm512_castps_si512(round_to_bf16(high));
  _mm512_storeu_si512(to, _mm512_permutex2var_epi16(a, _mm512_load_si512(kUpperHalves), b));
}

// A whole panel, no activation or relu: what Finish does, with all that the rows share at hand.
template <class Y>
struct PlainRows {
  Y* y = nullptr;  // of the next row
  const Y *residual = nullptr, *gate = nullptr;
  int64_t apart = 0, residual_apart = 0, gate_apart = 0;
  int64_t ahead = 0;  // elements from a row to the one that is asked for with it: of the block that is finished next
  const float* bias = nullptr;
  float scale = 1, least = 0;

  static bool take(const Finish<Y>& finish) {
    const Activation kind = finish.args.activation;
    return finish.columns == kTileColumns && (kind == Activation::none || kind == Activation::relu);
  }

  PlainRows() = default;
  PlainRows(const Finish<Y>& finish, int64_t row)
      : apart(finish.args.y.stride[0]),
        residual_apart(finish.args.residual.stride[0]),
        gate_apart(finish.args.gate.stride[0]),
        bias(finish.bias),
        scale(finish.args.scale),
        least(finish.args.activation == Activation::relu ? 0.0f : -__builtin_inff()) {
    y = static_cast<Y*>(finish.args.y.data) + row * apart + finish.column;
    residual = static_cast<const Y*>(finish.args.residual.data);
    if (residual) residual += row * residual_apart + finish.column;
    gate = static_cast<const Y*>(finish.args.gate.data);
    if (gate) gate += row * gate_apart + finish.column;
  }

  HWY_INLINE void run(const float* sums, int64_t count) {
    const __m512 times = _mm512_set1_ps(scale), floor = _mm512_set1_ps(least);
    const __m512 bias0 = _mm512_load_ps(bias), bias1 = _mm512_load_ps(bias + 16);
    Y* to = y;
    for (int64_t r = 0; r < count; ++r, sums += kTileColumns, to += apart) {
      // The second operand where one is NaN.
      __m512 low = _mm512_max_ps(floor, _mm512_fmadd_ps(_mm512_load_ps(sums), times, bias0));
      __m512 high = _mm512_max_ps(floor, _mm512_fmadd_ps(_mm512_load_ps(sums + 16), times, bias1));
      if (residual) {
        low = _mm512_add_ps(low, load_widened(residual).raw);
        high = _mm512_add_ps(high, load_widened(residual + 16).raw);
        residual += residual_apart;
      }
      if (gate) {
        low = gated(V{low}, gate).raw;
        high = gated(V{high}, gate + 16).raw;
        __builtin_prefetch(gate + ahead);
        if constexpr (sizeof(Y) == 4) __builtin_prefetch(gate + ahead + 16);
        gate += gate_apart;
      }
      store_columns(low, high, to);
      __builtin_prefetch(to + ahead, 1);
      if constexpr (sizeof(Y) == 4) __builtin_prefetch(to + ahead + 16, 1);
    }
    y = to;
  }
};

template <class Y>
struct TileBeat {
  const char* next = nullptr;  // of w
  int64_t fetch = 0;           // bytes of it a step
  const TileLeft* left = nullptr;
  int64_t near_row = 0, near_step = 0, near_end = 0;  // of left, to be brought near
  const Finish<Y>* finish = nullptr;
  bool plain = false;
  PlainRows<Y> plain_rows;
  const float* sums = nullptr;
  int64_t row = 0, rows = 0, each = 2;

  HWY_INLINE void operator()() {
    for (int64_t at = 0; at < fetch; at += 64) __builtin_prefetch(next + at, 0, 2);
    next += fetch;
    if (near_step < near_end) left->bring(near_row, near_step++);
    finish_some(each);
  }
  HWY_INLINE void finish_some(int64_t most) {
    const int64_t count = smaller(most, rows);
    if (count == 0) return;
    if (plain) {
      plain_rows.run(sums, count);
    } else {
      finish_others(count);
    }
    sums += count * kTileColumns;
    row += count;
    rows -= count;
  }
  // The next rows are those from `first` on, steps [step, end); what is left of those before them is brought now.
  void bring(int64_t first, int64_t step, int64_t end) {
    while (near_step < near_end) left->bring(near_row, near_step++);
    near_row = first;
    near_step = step;
    near_end = end;
  }
  void take(const Finish<Y>& with, const float* whole_sums, int64_t first, int64_t count, int64_t steps) {
    finish_some(rows);
    finish = &with;
    plain = PlainRows<Y>::take(with);
    if (plain) plain_rows = PlainRows<Y>(with, first);
    sums = whole_sums;
    row = first;
    rows = count;
    each = (count + steps - 1) / steps;
  }

 private:
  HWY_NOINLINE void finish_others(int64_t count) const {
    for (int64_t r = 0; r < count; ++r) finish->row(sums + r * kTileColumns, row + r);
  }
};
