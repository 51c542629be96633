// Attention on the device in double and by the plain algorithm, pair by pair with S, P and dS in memory: what
// attention_check compares the kernels with. Only the meaning of a pair (pairs.h, which tests/kernels checks on the
// CPU) is shared with them.
#pragma once

#include <cuda_runtime.h>

#include "multihead/kernels/cuda/elements.h"
#include "multihead/kernels/cuda/pairs.h"

namespace mh::kernels::cuda::reference {

// One run: in double it is the answer. In float it is the plain three-step algorithm, whose errors set the bounds: draw
// 0 rounds S, P, dP, dS and o to the type of q; later draws put noise of one rounding's standard deviation in place of
// each. (B, H, Tq, Tk) each; dropped pairs have kept = 0.
template <class Real>
struct Pairs {
  Real *s, *similarity, *p, *grad, *ds;
  uint8_t* kept;
  Real *lse, *delta;  // (B, H, Tq)
  Real *o, *dq;       // (B, H, Tq, D)
  Real *dk, *dv;      // (B, Hkv, Tk, D)
  Real *dbias, *drelative, *dsink, *dscale;
  Element type;
  int draw;
};

// Of mean 0 and variance 1.
__device__ inline float noise(int64_t n, int stage, int draw) {
  uint32_t x = static_cast<uint32_t>(n) * 0x9E3779B9u ^ static_cast<uint32_t>(stage * 31 + draw) * 0x85EBCA6Bu;
  x = (x ^ x >> 16) * 0x7FEB352Du;
  x = (x ^ x >> 15) * 0x846CA68Bu;
  x ^= x >> 16;
  return (static_cast<float>(x) * 0x1p-31f - 1) * 1.7320508f;
}

inline constexpr float kSingle = 0x1p-24f;

// x as the run holds it. A rounding errs by half the unit roundoff in the mean square.
template <class Real>
__device__ Real rounded(const Pairs<Real>& r, Real x, int64_t n, int stage) {
  if constexpr (sizeof(Real) == 4) {
    if (r.draw > 0) {
      const float share = r.type == Element::bf16 ? 0x1p-9f : r.type == Element::f16 ? 0x1p-12f : kSingle;
      const float least = r.type == Element::f16 ? 0x1p-24f * 0.29f : 0;
      return x + fmaf(share, fabsf(x), least) * noise(n, stage, r.draw);
    }
    if (r.type == Element::bf16) return __bfloat162float(__float2bfloat16(x));
    if (r.type == Element::f16) return __half2float(__float2half(x));
  }
  return x;
}

__device__ inline double value(const Array& a, int64_t i) { return load_any(a, i); }

// In float the sum itself errs: each product rounds, and each partial sum by 0.41 units in the mean square.
template <class Real>
__device__ Real product(const Pairs<Real>& r, const Array& x, int64_t xi, const Array& y, int64_t yi, int width,
                        int64_t n, int stage, float by = 1) {
  Real sum = 0, squares = 0;
  for (int d = 0; d < width; ++d) {
    const Real term = static_cast<Real>(value(x, xi + d)) * static_cast<Real>(value(y, yi + d) * by);
    sum += term;
    squares += term * term;
  }
  if (sizeof(Real) == 4 && r.draw > 0)
    sum += sqrt(squares) * kSingle * (1 + 0.41f * sqrtf(width / 2.f)) * noise(n, stage, r.draw);
  return sum;
}

struct At {
  int b, h, i, j, hk;
  Span span;
  int64_t row;
};
__device__ inline bool pair_at(const Call& c, int64_t n, At& at) {
  if (n >= static_cast<int64_t>(c.B) * c.H * c.Tq * c.Tk) return false;
  at.j = n % c.Tk;
  at.row = n / c.Tk;
  at.i = at.row % c.Tq;
  at.h = at.row / c.Tq % c.H;
  at.b = at.row / c.Tq / c.H;
  at.hk = at.h / (c.H / c.Hkv);
  at.span = span_of(c, at.b);
  return true;
}
__device__ inline int64_t q_at(const Array& a, const At& at) {
  return a.at(at.span.batch, at.h, at.span.q_begin + at.i);
}
__device__ inline int64_t k_at(const Array& a, const At& at) {
  return a.at(at.span.batch, at.hk, at.span.k_begin + at.j);
}
// A key or value of a cache: paged, and 8-bit numbers with a factor of their row.
struct Kept {
  int64_t at;
  float by;
};
__device__ inline Kept kept_at(const Call& c, const Array& a, const Array& scale, const At& at) {
  int64_t entry = at.span.batch, row = at.span.k_begin + at.j;
  if (c.pages) {
    entry = static_cast<const int*>(c.pages.data)[c.pages.at(at.b, at.j / c.page)];
    row = at.j % c.page;
  }
  return {a.at(entry, at.hk, row), scale ? static_cast<const float*>(scale.data)[scale.at(entry, at.hk, row)] : 1};
}
__device__ inline int64_t thread() { return static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; }
template <class Real>
__device__ Real unit_length(Real square) {
  const Real length = sqrt(square);
  return length < static_cast<Real>(0x1p-60) ? 0 : length;
}

template <class Real>
__global__ void scores(const __grid_constant__ Call c, Pairs<Real> r) {
  At at;
  const int64_t n = thread();
  if (!pair_at(c, n, at)) return;
  r.kept[n] = 0;
  r.p[n] = r.grad[n] = r.ds[n] = 0;
  if (at.i >= at.span.q_len || at.j >= at.span.k_len) return;
  if (!keeps(c.options, interval_of(c.options, at.span), at.b, at.h, at.i, at.j)) return;
  const Kept k = kept_at(c, c.k, c.k_scale, at);
  Real x = product(r, c.q, q_at(c.q, at), c.k, k.at, c.Dk, n, 0, k.by);
  const Real qq = product(r, c.q, q_at(c.q, at), c.q, q_at(c.q, at), c.Dk, at.row, 1);
  const Real kk = product(r, c.k, k.at, c.k, k.at, c.Dk, at.j, 2, k.by * k.by);
  if (c.options.likeness == Likeness::euclidean) x = 2 * x - qq - kk;
  if (c.options.likeness == Likeness::cosine) {
    const Real a = unit_length(qq), b = unit_length(kk);
    x = a == 0 || b == 0 ? 0 : x / a / b;
  }
  Real s = static_cast<Real>(c.options.scale[at.h]) * x;
  if (c.options.cap > 0) s = c.options.cap * tanh(s / c.options.cap);
  s += relative_bias(c.options, at.h, at.span.position + at.i - at.j);
  const Real bias = c.options.bias ? value(c.options.bias, c.options.bias.at(at.b, at.h, at.i, at.j)) : 0;
  s += bias;
  r.similarity[n] = x;
  r.s[n] = rounded(r, s, n, 3);
  r.kept[n] = bias != -INFINITY && s != -INFINITY;
}

template <class Real>
__global__ void rows(const __grid_constant__ Call c, Pairs<Real> r) {
  const int64_t row = thread();
  At at;
  if (row >= static_cast<int64_t>(c.B) * c.H * c.Tq) return;
  pair_at(c, row * c.Tk, at);
  Real top = c.options.sink ? c.options.sink[at.h] : -INFINITY, sum = 0;
  bool any = c.options.sink != nullptr;
  for (int64_t n = row * c.Tk; n < (row + 1) * c.Tk; ++n)
    if (r.kept[n]) {
      any = true;
      top = r.s[n] > top || r.s[n] != r.s[n] ? r.s[n] : top;
    }
  if (c.options.sink) sum = exp(c.options.sink[at.h] - top);
  for (int64_t n = row * c.Tk; n < (row + 1) * c.Tk; ++n)
    if (r.kept[n]) sum += exp(r.s[n] - top);
  const Real lse = any ? top + log(sum) : -INFINITY;
  r.lse[row] = lse;
  for (int64_t n = row * c.Tk; n < (row + 1) * c.Tk; ++n) r.p[n] = r.kept[n] ? rounded(r, exp(r.s[n] - lse), n, 4) : 0;
}

// What reaches the values. Dropout drops an element, not the pair: what is not finite in it may reach the row.
template <class Real>
__device__ Real dropped_out(const Call& c, const Pairs<Real>& r, const At& at, int64_t m) {
  const float factor = dropout_factor(c.options, at.b, at.h, at.i, at.j);
  return factor == 1 ? r.p[m] : rounded(r, r.p[m] * static_cast<Real>(factor), m, 6);
}

template <class Real>
__global__ void outputs(const __grid_constant__ Call c, Pairs<Real> r) {
  const int64_t n = thread(), row = n / c.Dv;
  if (row >= static_cast<int64_t>(c.B) * c.H * c.Tq) return;
  const int d = n % c.Dv;
  Real sum = 0;
  At at;
  for (int j = 0; j < c.Tk; ++j) {
    const int64_t m = row * c.Tk + j;
    if (!r.kept[m]) continue;
    pair_at(c, m, at);
    const Kept v = kept_at(c, c.v, c.v_scale, at);
    sum += dropped_out(c, r, at, m) * static_cast<Real>(value(c.v, v.at + d) * v.by);
  }
  r.o[n] = rounded(r, sum, n, 5);
}

template <class Real>
__global__ void deltas(const __grid_constant__ Call c, Pairs<Real> r) {
  const int64_t row = thread();
  if (row >= static_cast<int64_t>(c.B) * c.H * c.Tq) return;
  At at;
  pair_at(c, row * c.Tk, at);
  Real sum = 0;
  if (at.i < at.span.q_len) {
    bool any = false;
    for (int j = 0; j < c.Tk; ++j) any |= r.kept[row * c.Tk + j] != 0;
    // Descending: with one key Δ is dP, and summed alike their errors would cancel.
    for (int d = c.Dv - 1; any && d >= 0; --d)
      sum += r.o[row * c.Dv + d] * static_cast<Real>(value(c.d_o, q_at(c.d_o, at) + d));
    if (c.d_lse)
      sum -= static_cast<const float*>(c.d_lse.data)[c.d_lse.at(at.span.batch, at.h, at.span.q_begin + at.i)];
  }
  r.delta[row] = sum;
}

template <class Real>
__global__ void gradients(const __grid_constant__ Call c, Pairs<Real> r) {
  At at;
  const int64_t n = thread();
  if (!pair_at(c, n, at) || !r.kept[n]) return;
  const Real factor = dropout_factor(c.options, at.b, at.h, at.i, at.j);
  const Real through =
      factor == 0 ? 0 : rounded(r, factor * product(r, c.d_o, q_at(c.d_o, at), c.v, k_at(c.v, at), c.Dv, n, 7), n, 8);
  r.grad[n] = rounded(r, r.p[n] * (through - r.delta[at.row]), n, 9);
  const Real steep = c.options.cap > 0 ? cosh(c.options.scale[at.h] * r.similarity[n] / c.options.cap) : 1;
  r.ds[n] = r.grad[n] / (steep * steep);
}

// d similarity / d x of column d, where x is one side of the pair and y the other.
template <class Real>
__device__ Real slope(const Call& c, const Pairs<Real>& r, const Array& x, int64_t xi, const Array& y, int64_t yi,
                      int d, Real similarity) {
  if (c.options.likeness == Likeness::euclidean) return 2 * (value(y, yi + d) - value(x, xi + d));
  if (c.options.likeness == Likeness::cosine) {
    const Real a = unit_length(product(r, x, xi, x, xi, c.Dk, xi, 10)),
               b = unit_length(product(r, y, yi, y, yi, c.Dk, yi, 11));
    return a == 0 || b == 0 ? 0 : (value(y, yi + d) / b - similarity * value(x, xi + d) / a) / a;
  }
  return value(y, yi + d);
}

template <class Real>
__global__ void query_gradients(const __grid_constant__ Call c, Pairs<Real> r) {
  const int64_t n = thread(), row = n / c.Dk;
  if (row >= static_cast<int64_t>(c.B) * c.H * c.Tq) return;
  const int d = n % c.Dk;
  Real sum = 0;
  At at;
  for (int j = 0; j < c.Tk; ++j) {
    pair_at(c, row * c.Tk + j, at);
    const int64_t m = row * c.Tk + j;
    if (r.kept[m])
      sum += r.ds[m] * c.options.scale[at.h] * slope(c, r, c.q, q_at(c.q, at), c.k, k_at(c.k, at), d, r.similarity[m]);
  }
  r.dq[n] = sum;
}

template <class Real>
__global__ void key_gradients(const __grid_constant__ Call c, Pairs<Real> r) {
  const int width = c.Dk > c.Dv ? c.Dk : c.Dv;
  const int64_t n = thread(), key = n / width;
  if (key >= static_cast<int64_t>(c.B) * c.Hkv * c.Tk) return;
  const int d = n % width, j = key % c.Tk, hk = key / c.Tk % c.Hkv, b = key / c.Tk / c.Hkv, group = c.H / c.Hkv;
  Real dk = 0, dv = 0;
  At at;
  for (int h = hk * group; h < hk * group + group; ++h)
    for (int i = 0; i < c.Tq; ++i) {
      const int64_t m = ((static_cast<int64_t>(b) * c.H + h) * c.Tq + i) * c.Tk + j;
      if (!r.kept[m]) continue;
      pair_at(c, m, at);
      if (d < c.Dk)
        dk += r.ds[m] * c.options.scale[h] * slope(c, r, c.k, k_at(c.k, at), c.q, q_at(c.q, at), d, r.similarity[m]);
      if (d < c.Dv) dv += dropped_out(c, r, at, m) * static_cast<Real>(value(c.d_o, q_at(c.d_o, at) + d));
    }
  if (d < c.Dk) r.dk[key * c.Dk + d] = dk;
  if (d < c.Dv) r.dv[key * c.Dv + d] = dv;
}

// One thread per head, then per element of the bias: plain sums.
template <class Real>
__global__ void shared_gradients(const __grid_constant__ Call c, Pairs<Real> r) {
  const int64_t n = thread();
  At at;
  if (n < c.H) {
    Real sink = 0, tau = 0;
    for (int b = 0; b < c.B; ++b)
      for (int i = 0; i < c.Tq; ++i) {
        const int64_t row = (static_cast<int64_t>(b) * c.H + n) * c.Tq + i;
        pair_at(c, row * c.Tk, at);
        if (i >= at.span.q_len) continue;
        if (c.options.sink) sink -= exp(c.options.sink[n] - r.lse[row]) * r.delta[row];
        for (int j = 0; j < c.Tk; ++j)
          if (r.kept[row * c.Tk + j]) tau += r.ds[row * c.Tk + j] * r.similarity[row * c.Tk + j];
      }
    r.dsink[n] = sink;
    r.dscale[n] = tau;
  }
  if (c.dbias &&
      n < c.options.bias_size[0] * c.options.bias_size[1] * c.options.bias_size[2] * c.options.bias_size[3]) {
    Real sum = 0;
    const int full[4] = {c.B, c.H, c.Tq, c.Tk};
    int low[4], high[4];  // the pairs that read this element
    int64_t left = n;
    for (int axis = 3; axis >= 0; --axis) {
      const int own = static_cast<int>(c.options.bias_size[axis]), at_axis = static_cast<int>(left % own);
      left /= own;
      low[axis] = own == 1 ? 0 : at_axis;
      high[axis] = own == 1 ? full[axis] : at_axis + 1;
    }
    for (int b = low[0]; b < high[0]; ++b)
      for (int h = low[1]; h < high[1]; ++h)
        for (int i = low[2]; i < high[2]; ++i)
          for (int j = low[3]; j < high[3]; ++j) {
            const int64_t m = ((static_cast<int64_t>(b) * c.H + h) * c.Tq + i) * c.Tk + j;
            if (r.kept[m]) sum += r.grad[m];
          }
    r.dbias[n] = sum;
  }
  if (c.drelative && n < c.H * c.options.relative_count) {
    Real sum = 0;
    const int64_t h = n / c.options.relative_count, distance = n % c.options.relative_count + c.options.relative_min;
    for (int b = 0; b < c.B; ++b)
      for (int i = 0; i < c.Tq; ++i) {
        const Span span = span_of(c, b);
        const int64_t j = span.position + i - distance;
        const int64_t m = ((static_cast<int64_t>(b) * c.H + h) * c.Tq + i) * c.Tk + j;
        if (j >= 0 && j < c.Tk && i < span.q_len && r.kept[m]) sum += r.grad[m];
      }
    r.drelative[n] = sum;
  }
}

}  // namespace mh::kernels::cuda::reference
