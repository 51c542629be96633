// Recurrent cells, a row at a time: all gates of an element in one pass. And the scores of additive attention.
#pragma once

#include "multihead/kernels/cpu/rows/activation_math.inl"
#include "multihead/kernels/cpu/rows/vectors.inl"
#include "multihead/kernels/cpu/vector_math.inl"

HWY_INLINE V sigmoid_of(V x) { return activate(Activation::sigmoid, x); }

// dy · s (1 - s) and dy · (1 - t²), from what the functions gave.
HWY_INLINE V through_sigmoid(V dy, V s) { return hn::Mul(dy, hn::NegMulAdd(s, s, s)); }
HWY_INLINE V through_tanh(V dy, V t) { return hn::Mul(dy, hn::NegMulAdd(t, t, hn::Set(f32, 1.0f))); }

// Where the vectors of one row stand, in every array of a forward step.
struct CellRow {
  const float *x, *bias;
  float *gates, *h, *c, *kept;
  int64_t width;

  // The products of the state with gate `gate`, its bias added.
  template <class Extent>
  HWY_INLINE V product(int gate, int64_t i, Extent extent) const {
    const V p = get(gates + gate * width + i, extent);
    return bias ? hn::Add(p, get(bias + gate * width + i, extent)) : p;
  }
  template <class Extent>
  HWY_INLINE V sum(int gate, int64_t i, Extent extent) const {
    return hn::Add(product(gate, i, extent), get(x + gate * width + i, extent));
  }
  template <class Extent>
  HWY_INLINE void gate(int which, V value, int64_t i, Extent extent) const {
    put(value, gates + which * width + i, extent);
  }
};

template <class Extent>
HWY_INLINE V lstm_forward(const CellRow& row, int64_t i, Extent extent) {
  const V in = sigmoid_of(row.sum(0, i, extent)), forget = sigmoid_of(row.sum(1, i, extent));
  const V given = tanh(row.sum(2, i, extent)), out = sigmoid_of(row.sum(3, i, extent)), before = get(row.c + i, extent);
  const V c = hn::MulAdd(forget, before, hn::Mul(in, given));
  row.gate(0, in, i, extent);
  row.gate(1, forget, i, extent);
  row.gate(2, given, i, extent);
  row.gate(3, out, i, extent);
  if (row.kept) put(before, row.kept + i, extent);
  put(c, row.c + i, extent);
  return hn::Mul(out, tanh(c));
}

template <class Extent>
HWY_INLINE V gru_forward(const CellRow& row, int64_t i, Extent extent) {
  const V reset = sigmoid_of(row.sum(0, i, extent)), keeps = sigmoid_of(row.sum(1, i, extent));
  const V product = row.product(2, i, extent);
  const V fresh = tanh(hn::MulAdd(reset, product, get(row.x + 2 * row.width + i, extent)));
  row.gate(0, reset, i, extent);
  row.gate(1, keeps, i, extent);
  row.gate(2, fresh, i, extent);
  if (row.kept) put(product, row.kept + i, extent);
  return hn::MulAdd(keeps, hn::Sub(get(row.h + i, extent), fresh), fresh);
}

template <class Extent>
HWY_INLINE V plain_forward(Activation kind, const CellRow& row, int64_t i, Extent extent) {
  const V h = activate(kind, row.sum(0, i, extent));
  row.gate(0, h, i, extent);
  return h;
}

inline int64_t gates_of(Cell cell) { return cell == Cell::lstm ? 4 : cell == Cell::gru ? 3 : 1; }

void recurrent_forward(const RecurrentForwardArgs& args, Queue&) {
  const int64_t width = args.width, all = gates_of(args.cell) * width;
  for_rows(args.rows, all, [&](int64_t n) {
    const CellRow row{.x = args.x + args.at[n] * all,
                      .bias = args.bias,
                      .gates = args.gates + n * all,
                      .h = args.h + n * width,
                      .c = args.c ? args.c + n * width : nullptr,
                      .kept = args.kept ? args.kept + n * width : nullptr,
                      .width = width};
    float* y = args.y + args.at[n] * width;
    float* next =
        n < args.next && args.operand_type == DType::f32 ? static_cast<float*>(args.operand) + n * width : nullptr;
    bf16* half =
        n < args.next && args.operand_type == DType::bf16 ? static_cast<bf16*>(args.operand) + n * width : nullptr;
    for_vectors(width, [&](int64_t i, auto extent) {
      const V h = args.cell == Cell::lstm ? lstm_forward(row, i, extent)
                  : args.cell == Cell::gru
                      ? gru_forward(row, i, extent)
                      : plain_forward(args.cell == Cell::tanh ? Activation::tanh : Activation::relu, row, i, extent);
      put(h, row.h + i, extent);
      put(h, y + i, extent);
      if (next) put(h, next + i, extent);
      if (half) put(h, half + i, extent);
    });
  });
}

// Where the vectors of one row stand on the way back.
template <class T>
struct CellGradientRow {
  const float *gates, *kept, *dy;
  const T* before;
  float *dh, *dc, *dx;
  T* dproducts;
  int64_t width;

  template <class Extent>
  HWY_INLINE V gate(int which, int64_t i, Extent extent) const {
    return get(gates + which * width + i, extent);
  }
  template <class Extent>
  HWY_INLINE V all_dh(int64_t i, Extent extent) const {
    const V d = get(dh + i, extent);
    return dy ? hn::Add(d, get(dy + i, extent)) : d;
  }
  template <class Extent>
  HWY_INLINE void give(int which, V dgate, V dproduct, int64_t i, Extent extent) const {
    put(dgate, dx + which * width + i, extent);
    put(dproduct, dproducts + which * width + i, extent);
  }
};

template <class T, class Extent>
HWY_INLINE void lstm_backward(const CellGradientRow<T>& row, int64_t i, Extent extent) {
  const V in = row.gate(0, i, extent), forget = row.gate(1, i, extent), given = row.gate(2, i, extent),
          out = row.gate(3, i, extent);
  const V before = get(row.kept + i, extent), c = tanh(hn::MulAdd(forget, before, hn::Mul(in, given)));
  const V dh = row.all_dh(i, extent), dc = hn::Add(get(row.dc + i, extent), through_tanh(hn::Mul(dh, out), c));
  const V din = through_sigmoid(hn::Mul(dc, given), in), dforget = through_sigmoid(hn::Mul(dc, before), forget);
  const V dgiven = through_tanh(hn::Mul(dc, in), given), dout = through_sigmoid(hn::Mul(dh, c), out);
  put(hn::Mul(dc, forget), row.dc + i, extent);
  row.give(0, din, din, i, extent);
  row.give(1, dforget, dforget, i, extent);
  row.give(2, dgiven, dgiven, i, extent);
  row.give(3, dout, dout, i, extent);
}

template <class T, class Extent>
HWY_INLINE void gru_backward(const CellGradientRow<T>& row, int64_t i, Extent extent) {
  const V reset = row.gate(0, i, extent), keeps = row.gate(1, i, extent), fresh = row.gate(2, i, extent);
  const V dh = row.all_dh(i, extent), dfresh = through_tanh(hn::NegMulAdd(dh, keeps, dh), fresh);
  const V dkeeps = through_sigmoid(hn::Mul(dh, hn::Sub(get(row.before + i, extent), fresh)), keeps);
  const V dreset = through_sigmoid(hn::Mul(dfresh, get(row.kept + i, extent)), reset);
  put(hn::Mul(dh, keeps), row.dh + i, extent);
  row.give(0, dreset, dreset, i, extent);
  row.give(1, dkeeps, dkeeps, i, extent);
  row.give(2, dfresh, hn::Mul(dfresh, reset), i, extent);
}

template <class T, class Extent>
HWY_INLINE void plain_backward(bool is_tanh, const CellGradientRow<T>& row, int64_t i, Extent extent) {
  const V h = row.gate(0, i, extent), dh = row.all_dh(i, extent);
  const V d = is_tanh ? through_tanh(dh, h) : hn::Mul(dh, activate_slope(Activation::relu, h));
  row.give(0, d, d, i, extent);
}

template <class T>
inline void recurrent_backward_of(const RecurrentBackwardArgs& args) {
  const int64_t width = args.width, all = gates_of(args.cell) * width;
  for_rows(args.rows, all, [&](int64_t n) {
    const int64_t at = args.at[n];
    const CellGradientRow<T> row{.gates = args.gates + n * all,
                                 .kept = args.kept ? args.kept + n * width : nullptr,
                                 .dy = args.dy ? args.dy + at * width : nullptr,
                                 .before = static_cast<const T*>(args.before) + n * width,
                                 .dh = args.dh + n * width,
                                 .dc = args.dc ? args.dc + n * width : nullptr,
                                 .dx = args.dx + at * all,
                                 .dproducts = static_cast<T*>(args.dproducts) + n * all,
                                 .width = width};
    for_vectors(width, [&](int64_t i, auto extent) {
      if (args.cell == Cell::lstm) return lstm_backward(row, i, extent);
      if (args.cell == Cell::gru) return gru_backward(row, i, extent);
      plain_backward(args.cell == Cell::tanh, row, i, extent);
    });
  });
}

void recurrent_backward(const RecurrentBackwardArgs& args, Queue&) {
  if (args.type == DType::bf16) return recurrent_backward_of<bf16>(args);
  recurrent_backward_of<float>(args);
}

void additive_forward(const AdditiveForwardArgs& args, Queue&) {
  const int64_t width = args.width;
  parallel_near(args.sequences, [&](int64_t b) {
    const float* q = args.q + b * width;
    for (int64_t j = args.starts[b]; j < args.starts[b + 1]; ++j) {
      const float* k = args.k + j * width;
      Chains chains(0.0f);
      for_chains(width, [&](int64_t i, auto extent, int chain) {
        const V t = tanh(hn::Add(get(q + i, extent), get(k + i, extent)));
        chains.of[chain] = hn::MulAdd(get(args.w + i, extent), t, chains.of[chain]);
      });
      args.s[j] = chains.sum();
    }
  });
}

void additive_backward(const AdditiveBackwardArgs& args, Queue&) {
  const int64_t width = args.width;
  parallel_near(args.sequences, [&](int64_t b) {
    const float* q = args.q + b * width;
    float *dq = args.dq + b * width, *dw = args.dw + b * width;
    memset(dq, 0, static_cast<size_t>(width) * 4);
    memset(dw, 0, static_cast<size_t>(width) * 4);
    for (int64_t j = args.starts[b]; j < args.starts[b + 1]; ++j) {
      const float* k = args.k + j * width;
      const V ds = hn::Set(f32, args.ds[j]);
      for_vectors(width, [&](int64_t i, auto extent) {
        const V t = tanh(hn::Add(get(q + i, extent), get(k + i, extent)));
        const V d = hn::Mul(through_tanh(ds, t), get(args.w + i, extent));
        put(d, args.dk + j * width + i, extent);
        put(hn::Add(get(dq + i, extent), d), dq + i, extent);
        put(hn::MulAdd(ds, t, get(dw + i, extent)), dw + i, extent);
      });
    }
  });
}
