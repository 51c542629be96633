// Scores and gradients of single pairs, for any shape, type and option: what the generic kernels are made of.
#pragma once

#include "multihead/kernels/cuda/elements.h"
#include "multihead/kernels/cuda/pairs.h"

namespace mh::kernels::cuda {

inline constexpr float kShortest = 0x1p-60f;  // a vector shorter than this counts as zero under cosine similarity

template <class T>
__device__ __forceinline__ const T* row_at(const Array& a, const Span& span, int h, int i) {
  return static_cast<const T*>(a.data) + a.at(span.batch, h, i);
}

// Where key j of sequence b lies, paged or not.
struct KeyAt {
  int64_t entry, row;
};
__device__ __forceinline__ KeyAt key_at(const Call& call, const Span& span, int b, int j) {
  if (!call.pages) return {span.batch, span.k_begin + j};
  const int page = static_cast<const int*>(call.pages.data)[call.pages.at(b, j / call.page)];
  return {page, j % call.page};
}

// In four sums: shorter chains err less.
template <class X, class Y>
__device__ float dot(const X* x, const Y* y, int width) {
  float sum[4] = {};
  int d = 0;
  for (; d + 4 <= width; d += 4)
#pragma unroll
    for (int n = 0; n < 4; ++n) sum[n] = fmaf(load(x, d + n), load(y, d + n), sum[n]);
  for (; d < width; ++d) sum[0] = fmaf(load(x, d), load(y, d), sum[0]);
  return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

__device__ __forceinline__ float length_of(float square) {
  const float length = sqrtf(square);
  return length < kShortest ? 0 : length;
}

struct Score {
  bool kept = false;
  float s = 0, similarity = 0;
};

// product = q · k; qq, kk: squares of their lengths, read for cosine and Euclidean similarity alone.
__device__ inline Score score_of(const Call& call, const Span& span, int b, int h, int i, int j, float product,
                                 float qq, float kk) {
  const Options& options = call.options;
  Score out;
  out.similarity = product;
  if (options.likeness == Likeness::euclidean) out.similarity = 2 * product - qq - kk;
  if (options.likeness == Likeness::cosine) {
    const float ql = length_of(qq), kl = length_of(kk);
    out.similarity = ql == 0 || kl == 0 ? 0 : product / ql / kl;
  }
  out.s = options.scale[h] * out.similarity;
  if (options.cap > 0) out.s = options.cap * tanhf(out.s / options.cap);
  const float far = relative_bias(options, h, span.position + i - j);
  const float bias = options.bias ? load_any(options.bias, options.bias.at(b, h, i, j)) : 0.f;
  out.s = out.s + far + bias;
  out.kept = far != -INFINITY && bias != -INFINITY && out.s != -INFINITY;
  return out;
}

// All of a pair that backward needs. p: before dropout; factor: of dropout; ds: by the score before the cap; grad:
// after it.
struct Gradient {
  bool kept = false;
  float p = 0, factor = 0, grad = 0, ds = 0, similarity = 0;
};

template <class T>
__device__ Gradient gradient_of(const Call& call, const Span& span, const Interval& mask, int b, int h, int i, int j,
                                float lse, float delta) {
  Gradient out;
  if (!keeps(call.options, mask, b, h, i, j)) return out;
  const int hk = h / (call.H / call.Hkv);
  const T *q = row_at<T>(call.q, span, h, span.q_begin + i), *k = row_at<T>(call.k, span, hk, span.k_begin + j);
  const bool plain = call.options.likeness == Likeness::dot;
  const float qq = plain ? 0 : dot(q, q, call.Dk), kk = plain ? 0 : dot(k, k, call.Dk);
  const Score score = score_of(call, span, b, h, i, j, dot(q, k, call.Dk), qq, kk);
  if (!score.kept) return out;
  out.kept = true;
  out.similarity = score.similarity;
  out.p = expf(score.s - lse);
  out.factor = dropout_factor(call.options, b, h, i, j);
  float through = 0;
  if (out.factor != 0)
    through = out.factor * dot(row_at<T>(call.d_o, span, h, span.q_begin + i),
                               row_at<T>(call.v, span, hk, span.k_begin + j), call.Dv);
  out.grad = out.p * (through - delta);
  out.ds = out.grad * cap_slope(call.options.cap, call.options.scale[h] * score.similarity);
  return out;
}

__device__ __forceinline__ float lse_of(const Call& call, const Span& span, int h, int i) {
  return static_cast<const float*>(call.lse.data)[call.lse.at(span.batch, h, span.q_begin + i)];
}

}  // namespace mh::kernels::cuda
