// Attention forward for any shape, type and option, by plain f32 arithmetic: the fallback, and the reference on the
// device.
#include "multihead/kernels/cuda/entry.h"
#include "multihead/kernels/cuda/generic.h"
#include "multihead/kernels/cuda/launch.h"

namespace mh::kernels::cuda {
namespace {

constexpr int kWarps = 4, kMostWidth = 512;

// One warp a row: the lanes share 32 keys for the scores, then the columns for the values.
template <class T, class K>
__global__ __launch_bounds__(kWarps * 32) void generic_forward(const __grid_constant__ Call call) {
  __shared__ float rows[kWarps][kMostWidth];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, blocks = (call.Tq + kWarps - 1) / kWarps;
  const int head = blockIdx.x / blocks, i = (blockIdx.x % blocks) * kWarps + warp, b = head / call.H, h = head % call.H;
  const Span span = span_of(call, b);
  if (i >= span.q_len) return;
  const Interval mask = interval_of(call.options, span);
  const int hk = h / (call.H / call.Hkv);
  const T* q = row_at<T>(call.q, span, h, span.q_begin + i);
  float* x = rows[warp];
  for (int d = lane; d < call.Dk; d += 32) x[d] = load(q, d);
  __syncwarp();
  const bool plain = call.options.likeness == Likeness::dot;
  const float qq = plain ? 0 : dot(x, x, call.Dk);
  float top = -INFINITY, sum = 0, acc[kMostWidth / 32] = {};
  const int high = mask.high(i);
  for (int j0 = mask.low(i); j0 < high; j0 += 32) {
    const int j = j0 + lane;
    Score score;
    float factor = 0, v_scale = 1;
    if (j < high && keeps(call.options, mask, b, h, i, j)) {
      const KeyAt at = key_at(call, span, b, j);
      const K* k = static_cast<const K*>(call.k.data) + call.k.at(at.entry, hk, at.row);
      float product = dot(x, k, call.Dk), kk = plain ? 0 : dot(k, k, call.Dk);
      if (call.k_scale) {
        const float by = static_cast<const float*>(call.k_scale.data)[call.k_scale.at(at.entry, hk, at.row)];
        product *= by;
        kk *= by * by;
        v_scale = static_cast<const float*>(call.v_scale.data)[call.v_scale.at(at.entry, hk, at.row)];
      }
      score = score_of(call, span, b, h, i, j, product, qq, kk);
      factor = dropout_factor(call.options, b, h, i, j);
    }
    float now = score.kept ? score.s : -INFINITY;
    for (int s = 16; s; s >>= 1) {
      const float other = __shfl_xor_sync(~0u, now, s);
      now = now > other || now != now ? now : other;  // a NaN score must reach the row
    }
    now = top > now || top != top ? top : now;
    const float ref = now == -INFINITY ? 0.f : now, shrink = top == -INFINITY ? 0.f : expf(top - ref);
    const float p = score.kept ? expf(score.s - ref) : 0.f;
    float part = p;
    for (int s = 16; s; s >>= 1) part += __shfl_xor_sync(~0u, part, s);
    sum = sum * shrink + part;
    top = now;
#pragma unroll
    for (int c = 0; c < kMostWidth / 32; ++c) acc[c] *= shrink;
    const float weight = p * factor * v_scale;
    for (uint32_t left = __ballot_sync(~0u, score.kept); left; left &= left - 1) {
      const int n = __ffs(left) - 1;
      const float w = __shfl_sync(~0u, weight, n), keep = __shfl_sync(~0u, factor, n);
      if (keep == 0) continue;
      const KeyAt at = key_at(call, span, b, j0 + n);
      const K* v = static_cast<const K*>(call.v.data) + call.v.at(at.entry, hk, at.row);
#pragma unroll
      for (int c = 0; c < kMostWidth / 32; ++c)
        if (lane + 32 * c < call.Dv) acc[c] = fmaf(w, load(v, lane + 32 * c), acc[c]);
    }
  }
  if (call.options.sink) {
    const float sink = call.options.sink[h], now = top > sink || top != top ? top : sink;
    if (now != -INFINITY) {
      const float shrink = top == -INFINITY ? 0.f : expf(top - now);
      sum = sum * shrink + expf(sink - now);
#pragma unroll
      for (int c = 0; c < kMostWidth / 32; ++c) acc[c] *= shrink;
      top = now;
    }
  }
  T* o = static_cast<T*>(call.o.data) + call.o.at(span.batch, h, span.q_begin + i);
#pragma unroll
  for (int c = 0; c < kMostWidth / 32; ++c)
    if (lane + 32 * c < call.Dv) save(o, lane + 32 * c, sum == 0 ? 0.f : acc[c] / sum);
  if (lane == 0 && call.lse)
    static_cast<float*>(call.lse.data)[call.lse.at(span.batch, h, span.q_begin + i)] =
        sum == 0 ? -INFINITY : top + logf(sum);
}

template <class T>
cudaError_t run(const Call& call, cudaStream_t stream) {
  const Grid grid{dim3(static_cast<unsigned>(call.B * call.H * ((call.Tq + kWarps - 1) / kWarps))), kWarps * 32};
  if (call.k.type == Element::i8) return launch(generic_forward<T, int8_t>, grid, stream, call);
  return launch(generic_forward<T, T>, grid, stream, call);
}

}  // namespace

cudaError_t forward_generic(const Call& call, cudaStream_t stream) {
  if (call.B * call.H * call.Tq == 0) return cudaSuccess;
  if (call.q.type == Element::bf16) return run<__nv_bfloat16>(call, stream);
  if (call.q.type == Element::f16) return run<__half>(call, stream);
  return run<float>(call, stream);
}

}  // namespace mh::kernels::cuda
