// Attention backward for any shape, type and option, by plain f32 arithmetic. Every sum runs in a fixed order: no
// atomics.
#include "multihead/kernels/cuda/entry.h"
#include "multihead/kernels/cuda/generic.h"
#include "multihead/kernels/cuda/launch.h"
#include "multihead/kernels/cuda/plan.h"
#include "multihead/kernels/cuda/rows.h"

namespace mh::kernels::cuda {
namespace {

constexpr int kWarps = 4, kMostWidth = 512, kColumns = kMostWidth / 32;

__device__ __forceinline__ float warp_total(float x) {
  for (int s = 16; s; s >>= 1) x += __shfl_xor_sync(~0u, x, s);
  return x;
}

// From the gradient of a unit vector to that of the vector x it came from.
template <class T>
__device__ void through_unit(const T* x, float (&grad)[kColumns], int width, int lane) {
  float square = 0, along = 0;
  for (int d = lane; d < width; d += 32) square = fmaf(load(x, d), load(x, d), square);
  const float length = length_of(warp_total(square));
#pragma unroll
  for (int c = 0; c < kColumns; ++c)
    if (lane + 32 * c < width && grad[c] != 0) along = fmaf(load(x, lane + 32 * c) / length, grad[c], along);
  along = warp_total(along);
#pragma unroll
  for (int c = 0; c < kColumns; ++c) {
    if (lane + 32 * c >= width) continue;
    const float across = along == 0 ? grad[c] : grad[c] - along * (load(x, lane + 32 * c) / length);
    grad[c] = length == 0 || across == 0 ? 0 : across / length;
  }
}

// What one pair adds to dq: weight · (k, its unit vector, or 2 (k - q)).
template <class T>
__device__ float other_side(const Call& call, const T* from, const T* own, float inverse_length, int d) {
  const float x = load(from, d);
  if (call.options.likeness == Likeness::cosine) return x * inverse_length;
  if (call.options.likeness == Likeness::euclidean) return 2 * (x - load(own, d));
  return x;
}

template <class T>
__device__ float inverse_length(const Call& call, const T* x) {
  if (call.options.likeness != Likeness::cosine) return 1;
  const float length = length_of(dot(x, x, call.Dk));
  return length == 0 ? 0 : 1 / length;
}

// One warp a row: dq, and the row's share of dscale.
template <class T>
__global__ __launch_bounds__(kWarps * 32) void generic_dq(const __grid_constant__ Call call, const float* delta,
                                                          int padded, float* tau_rows) {
  const int lane = threadIdx.x % 32, blocks = (call.Tq + kWarps - 1) / kWarps, head = blockIdx.x / blocks;
  const int i = (blockIdx.x % blocks) * kWarps + threadIdx.x / 32, b = head / call.H, h = head % call.H,
            hk = h / (call.H / call.Hkv);
  const Span span = span_of(call, b);
  if (i >= span.q_len) return;
  const Interval mask = interval_of(call.options, span);
  const float change = delta[static_cast<int64_t>(head) * padded + i], lse = lse_of(call, span, h, i),
              scale = call.options.scale[h];
  const T* q = row_at<T>(call.q, span, h, span.q_begin + i);
  float acc[kColumns] = {}, tau = 0;
  const int high = mask.high(i);
  for (int j0 = mask.low(i); j0 < high; j0 += 32) {
    const int j = j0 + lane;
    Gradient pair;
    if (j < high) pair = gradient_of<T>(call, span, mask, b, h, i, j, lse, change);
    float inverse = 1;
    if (pair.kept) {
      tau = fmaf(pair.ds, pair.similarity, tau);
      inverse = inverse_length(call, row_at<T>(call.k, span, hk, span.k_begin + j));
    }
    for (uint32_t left = __ballot_sync(~0u, pair.kept); left; left &= left - 1) {
      const int n = __ffs(left) - 1;
      const float w = __shfl_sync(~0u, pair.ds, n) * scale, u = __shfl_sync(~0u, inverse, n);
      const T* k = row_at<T>(call.k, span, hk, span.k_begin + j0 + n);
#pragma unroll
      for (int c = 0; c < kColumns; ++c)
        if (lane + 32 * c < call.Dk) acc[c] = fmaf(w, other_side(call, k, q, u, lane + 32 * c), acc[c]);
    }
  }
  tau = warp_total(tau);
  if (lane == 0 && tau_rows) tau_rows[static_cast<int64_t>(head) * padded + i] = tau;
  if (!call.dq) return;
  if (call.options.likeness == Likeness::cosine) through_unit(q, acc, call.Dk, lane);
  T* dq = static_cast<T*>(call.dq.data) + call.dq.at(span.batch, h, span.q_begin + i);
#pragma unroll
  for (int c = 0; c < kColumns; ++c)
    if (lane + 32 * c < call.Dk) save(dq, lane + 32 * c, acc[c]);
}

// One warp a key: dk and dv over the heads of its group and their rows, in ascending order.
template <class T>
__global__ __launch_bounds__(kWarps * 32) void generic_dkv(const __grid_constant__ Call call, const float* delta,
                                                           int padded) {
  const int lane = threadIdx.x % 32, blocks = (call.Tk + kWarps - 1) / kWarps, head = blockIdx.x / blocks;
  const int j = (blockIdx.x % blocks) * kWarps + threadIdx.x / 32, b = head / call.Hkv, hk = head % call.Hkv,
            group = call.H / call.Hkv;
  const Span span = span_of(call, b);
  if (j >= span.k_len) return;
  const Interval mask = interval_of(call.options, span);
  const T* k = row_at<T>(call.k, span, hk, span.k_begin + j);
  float ak[kColumns] = {}, av[kColumns] = {};
  const int first = min(mask.first_row(j), span.q_len) / 32 * 32, last = mask.end_row(j + 1, span.q_len);
  for (int h = hk * group; h < hk * group + group; ++h) {
    const float scale = call.options.scale[h];
    for (int i0 = first; i0 < last; i0 += 32) {
      const int i = i0 + lane;
      Gradient pair;
      float inverse = 1;
      if (i < last)
        pair = gradient_of<T>(call, span, mask, b, h, i, j, lse_of(call, span, h, i),
                              delta[(static_cast<int64_t>(b) * call.H + h) * padded + i]);
      if (pair.kept) inverse = inverse_length(call, row_at<T>(call.q, span, h, span.q_begin + i));
      for (uint32_t left = __ballot_sync(~0u, pair.kept); left; left &= left - 1) {
        const int n = __ffs(left) - 1;
        const float w = __shfl_sync(~0u, pair.ds, n) * scale, u = __shfl_sync(~0u, inverse, n);
        const float factor = __shfl_sync(~0u, pair.factor, n), p = __shfl_sync(~0u, pair.p, n) * factor;
        const T *q = row_at<T>(call.q, span, h, span.q_begin + i0 + n),
                *g = row_at<T>(call.d_o, span, h, span.q_begin + i0 + n);
#pragma unroll
        for (int c = 0; c < kColumns; ++c) {
          if (lane + 32 * c < call.Dk) ak[c] = fmaf(w, other_side(call, q, k, u, lane + 32 * c), ak[c]);
          if (factor != 0 && lane + 32 * c < call.Dv) av[c] = fmaf(p, load(g, lane + 32 * c), av[c]);
        }
      }
    }
  }
  if (call.options.likeness == Likeness::cosine) through_unit(k, ak, call.Dk, lane);
#pragma unroll
  for (int c = 0; c < kColumns; ++c) {
    const int d = lane + 32 * c;
    if (call.dk && d < call.Dk)
      save(static_cast<T*>(call.dk.data) + call.dk.at(span.batch, hk, span.k_begin + j), d, ak[c]);
    if (call.dv && d < call.Dv)
      save(static_cast<T*>(call.dv.data) + call.dv.at(span.batch, hk, span.k_begin + j), d, av[c]);
  }
}

// One thread an element of dbias: the pairs that read it, in ascending order.
template <class T>
__global__ void generic_dbias(const __grid_constant__ Call call, const float* delta, int padded, int64_t elements) {
  const int64_t n = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (n >= elements) return;
  const int sizes[4] = {call.B, call.H, call.Tq, call.Tk};
  int from[4], to[4];
  int64_t left = n;
  for (int axis = 3; axis >= 0; --axis) {
    const int own = static_cast<int>(call.options.bias_size[axis]), at = static_cast<int>(left % own);
    left /= own;
    const bool shared = call.dbias.stride[axis] == 0 || own == 1;
    from[axis] = shared ? 0 : at;
    to[axis] = shared ? sizes[axis] : at + 1;
  }
  float sum = 0;
  for (int b = from[0]; b < to[0]; ++b) {
    const Span span = span_of(call, b);
    const Interval mask = interval_of(call.options, span);
    for (int h = from[1]; h < to[1]; ++h)
      for (int i = from[2]; i < min(to[2], span.q_len); ++i)
        for (int j = max(from[3], mask.low(i)); j < min(to[3], mask.high(i)); ++j)
          sum += gradient_of<T>(call, span, mask, b, h, i, j, lse_of(call, span, h, i),
                                delta[(static_cast<int64_t>(b) * call.H + h) * padded + i])
                     .grad;
  }
  static_cast<float*>(call.dbias.data)[call.dbias.at(from[0], from[1], from[2], from[3])] = sum;
}

// One thread a distance of a head: the pairs at that distance, sequence by sequence, row by row.
template <class T>
__global__ void generic_drelative(const __grid_constant__ Call call, const float* delta, int padded) {
  const int64_t n = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (n >= call.options.relative_count * call.H) return;
  const int h = static_cast<int>(n / call.options.relative_count);
  const int64_t distance = n % call.options.relative_count + call.options.relative_min;
  float sum = 0;
  for (int b = 0; b < call.B; ++b) {
    const Span span = span_of(call, b);
    const Interval mask = interval_of(call.options, span);
    for (int i = 0; i < span.q_len; ++i) {
      const int64_t j = span.position + i - distance;
      if (j < mask.low(i) || j >= mask.high(i)) continue;
      sum += gradient_of<T>(call, span, mask, b, h, i, static_cast<int>(j), lse_of(call, span, h, i),
                            delta[(static_cast<int64_t>(b) * call.H + h) * padded + i])
                 .grad;
    }
  }
  call.drelative[n] = sum;
}

// One block a head: dsink = -Σ p_sink · Δ and dscale = Σ of the rows' shares; thread t takes rows t, t + 256, …, then a
// fixed tree.
__global__ void head_sums(const __grid_constant__ Call call, const float* delta, const float* tau_rows, int padded) {
  __shared__ float sink_part[256], tau_part[256];
  const int h = blockIdx.x, t = threadIdx.x;
  float sink = 0, tau = 0;
  for (int b = 0; b < call.B; ++b) {
    const Span span = span_of(call, b);
    const int64_t head = (static_cast<int64_t>(b) * call.H + h) * padded;
    for (int i = t; i < span.q_len; i += 256) {
      const float lse = lse_of(call, span, h, i);
      if (call.dsink && lse != -INFINITY) sink -= expf(call.options.sink[h] - lse) * delta[head + i];
      if (call.dscale) tau += tau_rows[head + i];
    }
  }
  sink_part[t] = sink;
  tau_part[t] = tau;
  for (int s = 128; s; s >>= 1) {
    __syncthreads();
    if (t < s) {
      sink_part[t] += sink_part[t + s];
      tau_part[t] += tau_part[t + s];
    }
  }
  if (t == 0 && call.dsink) call.dsink[h] = sink_part[0];
  if (t == 0 && call.dscale) call.dscale[h] = tau_part[0];
}

int blocks_for(int64_t n, int each) { return static_cast<int>((n + each - 1) / each); }

template <class T>
cudaError_t rows(const Call& call, const Rows& rows, cudaStream_t stream) {
  if constexpr (sizeof(T) == 2) {
    if (call.Dv <= 128 && tma_reads(call.o, call.Dv) && tma_reads(call.d_o, call.Dv)) {
      const bool narrow = call.Dv <= 64;
      const Grid grid{dim3(blocks_for(rows.padded, narrow ? 32 : 16), call.B * call.H), 256};
      if (narrow) return launch(attention_rows_wide<T, 8>, grid, stream, call, rows.lse2, rows.delta, rows.padded);
      return launch(attention_rows_wide<T, 16>, grid, stream, call, rows.lse2, rows.delta, rows.padded);
    }
  }
  return launch(attention_rows<T>, Grid{dim3(blocks_for(rows.padded, 8), call.B * call.H), 256}, stream, call,
                rows.lse2, rows.delta, rows.padded);
}

template <class T>
cudaError_t core(const Call& call, const Rows& rows, cudaStream_t stream) {
  cudaError_t error = cudaSuccess;
  if (call.dq || call.dscale)
    error = launch(generic_dq<T>, Grid{dim3(call.B * call.H * blocks_for(call.Tq, kWarps)), kWarps * 32}, stream, call,
                   rows.delta, rows.padded, rows.tau);
  if (error == cudaSuccess && (call.dk || call.dv) && call.Tk > 0)
    error = launch(generic_dkv<T>, Grid{dim3(call.B * call.Hkv * blocks_for(call.Tk, kWarps)), kWarps * 32}, stream,
                   call, rows.delta, rows.padded);
  return error;
}

template <class T>
cudaError_t extras(const Call& call, const Rows& rows, cudaStream_t stream) {
  cudaError_t error = cudaSuccess;
  if (call.dbias) {
    int64_t elements = 1;
    for (int64_t size : call.options.bias_size) elements *= size;
    if (elements > 0)
      error = launch(generic_dbias<T>, Grid{dim3(blocks_for(elements, 128)), 128}, stream, call, rows.delta,
                     rows.padded, elements);
  }
  const int64_t distances = call.options.relative_count * call.H;
  if (error == cudaSuccess && call.drelative && distances > 0)
    error = launch(generic_drelative<T>, Grid{dim3(blocks_for(distances, 128)), 128}, stream, call, rows.delta,
                   rows.padded);
  if (error == cudaSuccess && (call.dsink || call.dscale))
    error = launch(head_sums, Grid{dim3(call.H), 256}, stream, call, rows.delta, rows.tau, rows.padded);
  return error;
}

template <class Run>
cudaError_t by_type(const Call& call, Run&& run) {
  if (call.q.type == Element::bf16) return run.template operator()<__nv_bfloat16>();
  if (call.q.type == Element::f16) return run.template operator()<__half>();
  return run.template operator()<float>();
}

}  // namespace

cudaError_t backward_rows(const Call& call, const Rows& r, cudaStream_t stream) {
  return by_type(call, [&]<class T>() { return rows<T>(call, r, stream); });
}
cudaError_t backward_generic(const Call& call, const Rows& r, cudaStream_t stream) {
  return by_type(call, [&]<class T>() { return core<T>(call, r, stream); });
}
cudaError_t backward_extras(const Call& call, const Rows& r, cudaStream_t stream) {
  return by_type(call, [&]<class T>() { return extras<T>(call, r, stream); });
}

}  // namespace mh::kernels::cuda
