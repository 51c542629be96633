// Rows one by one, by pairs that are kept alone: what a tile falls back to when it met garbage in a place that a mask
// drops (0 · NaN is NaN) or left the range of the fixed reference. One warp a row; the lanes share keys, then columns.
#pragma once

#include "multihead/kernels/cuda/generic.h"
#include "multihead/kernels/cuda/hopper/fragment.h"

namespace mh::kernels::cuda {

template <class T>
MH_DEVICE float dot_rows(const T* x, const T* y, int width) {
  float sum = 0;
  for (int d = 0; d < width; d += 8) {
    const uint4 a = *reinterpret_cast<const uint4*>(x + d), b = *reinterpret_cast<const uint4*>(y + d);
    const uint32_t u[4] = {a.x, a.y, a.z, a.w}, w[4] = {b.x, b.y, b.z, b.w};
#pragma unroll
    for (int n = 0; n < 4; ++n) {
      const float2 f = unpack<T>(u[n]), g = unpack<T>(w[n]);
      sum = fmaf(f.x, g.x, sum);
      sum = fmaf(f.y, g.y, sum);
    }
  }
  return sum;
}

MH_DEVICE float warp_max(float x) {
  for (int s = 16; s; s >>= 1) x = fmaxf(x, __shfl_xor_sync(~0u, x, s));
  return x;
}
MH_DEVICE float warp_sum(float x) {
  for (int s = 16; s; s >>= 1) x += __shfl_xor_sync(~0u, x, s);
  return x;
}

template <class T>
struct Rows {
  T* data;
  int64_t stride;
  MH_DEVICE T* operator[](int i) const { return data + i * stride; }
};
template <class T>
MH_DEVICE Rows<T> rows_of(const Array& array, int batch, int head, int begin) {
  return {static_cast<T*>(array.data) + array.at(batch, head, begin), array.stride[2]};
}

// o and lse of rows [row, row + 16) of a head; at most 32 · kColumns columns.
template <class T, int kColumns, bool kOptions>
MH_DEVICE void careful_forward(const Call& call, const Span& span, const Interval& mask, int b, int h, int row,
                               int lane) {
  const int hk = h / (call.H / call.Hkv);
  const Rows<T> q = rows_of<T>(call.q, span.batch, h, span.q_begin),
                o = rows_of<T>(call.o, span.batch, h, span.q_begin);
  const Rows<T> k = rows_of<T>(call.k, span.batch, hk, span.k_begin),
                v = rows_of<T>(call.v, span.batch, hk, span.k_begin);
  const float scale = call.options.scale[h];
  for (int i = row; i < min(row + 16, span.q_len); ++i) {
    const int low = mask.low(i), high = mask.high(i);
    float top = -INFINITY, sum = 0, acc[kColumns] = {};
    for (int j0 = low; j0 < high; j0 += 32) {
      const int j = j0 + lane;
      float s = -INFINITY, factor = 1;
      bool kept = j < high;
      if constexpr (kOptions) {
        kept = kept && keeps(call.options, mask, b, h, i, j);
        if (kept) {
          const Score score = score_of(call, span, b, h, i, j, dot_rows(q[i], k[j], call.Dk), 0, 0);
          kept = score.kept;
          s = kept ? score.s : -INFINITY;
          factor = dropout_factor(call.options, b, h, i, j);
        }
      } else if (kept) {
        s = scale * dot_rows(q[i], k[j], call.Dk);
      }
      const float now = fmaxf(top, warp_max(s)), ref = now == -INFINITY ? 0.f : now;
      const float shrink = top == -INFINITY ? 0.f : expf(top - ref), p = expf(s - ref);
      sum = sum * shrink + warp_sum(p);
      top = now;
#pragma unroll
      for (int c = 0; c < kColumns; ++c) acc[c] *= shrink;
      for (uint32_t left = __ballot_sync(~0u, kept && factor != 0); left; left &= left - 1) {
        const int n = __ffs(left) - 1;
        const float w = __shfl_sync(~0u, p * factor, n);
#pragma unroll
        for (int c = 0; c < kColumns; ++c)
          if (lane + 32 * c < call.Dv) acc[c] = fmaf(w, static_cast<float>(v[j0 + n][lane + 32 * c]), acc[c]);
      }
    }
    if (call.options.sink) {
      const float sink = call.options.sink[h], now = fmaxf(top, sink),
                  shrink = top == -INFINITY ? 0.f : expf(top - now);
      sum = sum * shrink + expf(sink - now);
#pragma unroll
      for (int c = 0; c < kColumns; ++c) acc[c] *= shrink;
      top = now;
    }
    const float inverse = sum == 0.f ? 0.f : 1 / sum;
#pragma unroll
    for (int c = 0; c < kColumns; ++c)
      if (lane + 32 * c < call.Dv) o[i][lane + 32 * c] = static_cast<T>(acc[c] * inverse);
    if (lane == 0 && call.lse)
      static_cast<float*>(call.lse.data)[call.lse.at(span.batch, h, span.q_begin + i)] =
          sum == 0.f ? -INFINITY : top + logf(sum);
  }
}

// dq of rows [row, row + 16). lse2, delta: of this head, from its row 0.
template <class T>
MH_DEVICE void careful_dq(const Call& call, const Span& span, const Interval& mask, const float* lse2,
                          const float* delta, int h, int row, int lane) {
  const int hk = h / (call.H / call.Hkv);
  const Rows<T> q = rows_of<T>(call.q, span.batch, h, span.q_begin),
                g = rows_of<T>(call.d_o, span.batch, h, span.q_begin);
  const Rows<T> k = rows_of<T>(call.k, span.batch, hk, span.k_begin),
                v = rows_of<T>(call.v, span.batch, hk, span.k_begin);
  const Rows<T> dq = rows_of<T>(call.dq, span.batch, h, span.q_begin);
  const float scale = call.options.scale[h];
  for (int i = row; i < min(row + 16, span.q_len); ++i) {
    const int low = mask.low(i), high = mask.high(i);
    float acc[4] = {};
    for (int j0 = low; j0 < high; j0 += 32) {
      const int j = j0 + lane;
      float ds = 0;
      if (j < high)
        ds = exp2f(scale * dot_rows(q[i], k[j], call.Dk) * kLog2e - lse2[i]) *
             (dot_rows(g[i], v[j], call.Dv) - delta[i]);
      for (int n = 0; n < min(32, high - j0); ++n) {
        const float w = __shfl_sync(~0u, ds, n);
#pragma unroll
        for (int c = 0; c < 4; ++c)
          if (lane + 32 * c < call.Dk) acc[c] = fmaf(w, static_cast<float>(k[j0 + n][lane + 32 * c]), acc[c]);
      }
    }
#pragma unroll
    for (int c = 0; c < 4; ++c)
      if (lane + 32 * c < call.Dk) dq[i][lane + 32 * c] = static_cast<T>(acc[c] * scale);
  }
}

// dk and dv of keys [key, key + 16). lse2, delta: of the whole call, `padded` rows a head.
template <class T>
MH_DEVICE void careful_dkv(const Call& call, const Span& span, const Interval& mask, const float* lse2,
                           const float* delta, int padded, int b, int hk, int key, int lane) {
  const int group = call.H / call.Hkv;
  const Rows<T> k = rows_of<T>(call.k, span.batch, hk, span.k_begin),
                v = rows_of<T>(call.v, span.batch, hk, span.k_begin);
  const Rows<T> dk = rows_of<T>(call.dk, span.batch, hk, span.k_begin),
                dv = rows_of<T>(call.dv, span.batch, hk, span.k_begin);
  for (int j = key; j < min(key + 16, span.k_len); ++j) {
    float ak[4] = {}, av[4] = {};
    for (int h = hk * group; h < hk * group + group; ++h) {
      const Rows<T> q = rows_of<T>(call.q, span.batch, h, span.q_begin),
                    g = rows_of<T>(call.d_o, span.batch, h, span.q_begin);
      const float scale = call.options.scale[h];
      const float *l = lse2 + (static_cast<int64_t>(b) * call.H + h) * padded,
                  *t = delta + (static_cast<int64_t>(b) * call.H + h) * padded;
      for (int i0 = 0; i0 < span.q_len; i0 += 32) {
        const int i = i0 + lane;
        const bool kept = i < span.q_len && mask.keeps(i, j);
        float p = 0, ds = 0;
        if (kept) {
          p = exp2f(scale * dot_rows(q[i], k[j], call.Dk) * kLog2e - l[i]);
          ds = p * (dot_rows(g[i], v[j], call.Dv) - t[i]) * scale;
        }
        for (uint32_t left = __ballot_sync(~0u, kept); left; left &= left - 1) {
          const int n = __ffs(left) - 1;
          const float w = __shfl_sync(~0u, p, n), x = __shfl_sync(~0u, ds, n);
#pragma unroll
          for (int c = 0; c < 4; ++c) {
            if (lane + 32 * c < call.Dv) av[c] = fmaf(w, static_cast<float>(g[i0 + n][lane + 32 * c]), av[c]);
            if (lane + 32 * c < call.Dk) ak[c] = fmaf(x, static_cast<float>(q[i0 + n][lane + 32 * c]), ak[c]);
          }
        }
      }
    }
#pragma unroll
    for (int c = 0; c < 4; ++c) {
      if (lane + 32 * c < call.Dk) dk[j][lane + 32 * c] = static_cast<T>(ak[c]);
      if (lane + 32 * c < call.Dv) dv[j][lane + 32 * c] = static_cast<T>(av[c]);
    }
  }
}

}  // namespace mh::kernels::cuda
