// Per row of a backward call: Δ = Σ dO · O - dlse, and lse in base 2, both padded to whole tiles.
// Padding rows and rows that keep no key get lse2 = +inf, so that their weights are 0 without a mask.
#pragma once

#include "multihead/kernels/cuda/elements.h"
#include "multihead/kernels/cuda/pairs.h"

namespace mh::kernels::cuda {

// One warp a row; grid (padded / 8, B · H) of 256 threads.
template <class T>
__global__ void attention_rows(const __grid_constant__ Call call, float* lse2, float* delta, int padded) {
  const int i = blockIdx.x * 8 + threadIdx.x / 32, lane = threadIdx.x % 32, head = blockIdx.y, b = head / call.H,
            h = head % call.H;
  if (i >= padded) return;
  const Span span = span_of(call, b);
  float sum = 0, log = -INFINITY;
  if (i < span.q_len) {
    log = static_cast<const float*>(call.lse.data)[call.lse.at(span.batch, h, span.q_begin + i)];
    const T* o = static_cast<const T*>(call.o.data) + call.o.at(span.batch, h, span.q_begin + i);
    const T* g = static_cast<const T*>(call.d_o.data) + call.d_o.at(span.batch, h, span.q_begin + i);
    const Interval mask = interval_of(call.options, span);
    if (mask.low(i) < mask.high(i) && log != -INFINITY) {
      for (int d = lane; d < call.Dv; d += 32) {
        // A row that dense masks empty has o = 0 and may hold anything in dO.
        const float x = load(o, d);
        if (x != 0) sum = fmaf(x, load(g, d), sum);
      }
    } else {
      log = -INFINITY;
    }
    for (int s = 16; s; s >>= 1) sum += __shfl_xor_sync(~0u, sum, s);
    if (call.d_lse) sum -= static_cast<const float*>(call.d_lse.data)[call.d_lse.at(span.batch, h, span.q_begin + i)];
  }
  if (lane == 0) {
    lse2[static_cast<int64_t>(head) * padded + i] = log == -INFINITY ? INFINITY : log * 1.4426950408889634f;
    delta[static_cast<int64_t>(head) * padded + i] = sum;
  }
}

// The same for 16-bit rows of 16-byte units, at most 8 · kLanes columns: kLanes lanes a row, 256 threads a block.
template <class T, int kLanes>
__global__ void attention_rows_wide(const __grid_constant__ Call call, float* lse2, float* delta, int padded) {
  const int i = blockIdx.x * (256 / kLanes) + threadIdx.x / kLanes, lane = threadIdx.x % kLanes, head = blockIdx.y,
            b = head / call.H, h = head % call.H;
  if (i >= padded) return;  // padded is a multiple of 64: whole warps leave
  const Span span = span_of(call, b);
  float sum = 0, log = -INFINITY;
  if (i < span.q_len) {
    log = static_cast<const float*>(call.lse.data)[call.lse.at(span.batch, h, span.q_begin + i)];
    const Interval mask = interval_of(call.options, span);
    if (mask.low(i) >= mask.high(i)) log = -INFINITY;
    if (log != -INFINITY && lane * 8 < call.Dv) {
      const uint4 x = *reinterpret_cast<const uint4*>(static_cast<const T*>(call.o.data) +
                                                      call.o.at(span.batch, h, span.q_begin + i, lane * 8));
      const uint4 y = *reinterpret_cast<const uint4*>(static_cast<const T*>(call.d_o.data) +
                                                      call.d_o.at(span.batch, h, span.q_begin + i, lane * 8));
      const T *u = reinterpret_cast<const T*>(&x), *w = reinterpret_cast<const T*>(&y);
#pragma unroll
      for (int d = 0; d < 8; ++d)
        if (load(u, d) != 0) sum = fmaf(load(u, d), load(w, d), sum);
    }
  }
#pragma unroll
  for (int s = kLanes / 2; s; s >>= 1) sum += __shfl_xor_sync(~0u, sum, s);
  if (lane != 0) return;
  if (i < span.q_len && call.d_lse)
    sum -= static_cast<const float*>(call.d_lse.data)[call.d_lse.at(span.batch, h, span.q_begin + i)];
  lse2[static_cast<int64_t>(head) * padded + i] = log == -INFINITY ? INFINITY : log * 1.4426950408889634f;
  delta[static_cast<int64_t>(head) * padded + i] = sum;
}

}  // namespace mh::kernels::cuda
