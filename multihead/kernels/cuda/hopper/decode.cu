// Decode on Hopper: one query a sequence, keys split into chunks, deterministic and independent of the batch.
// Every warp works alone: it streams one chunk of keys through its own stages, no barrier between warps. Sᵀ = K·Qᵀ as
// m16n8k16 (16 keys × 8 heads), Oᵀ += Vᵀ·Pᵀ; a second kernel joins the chunks.
#include "multihead/kernels/cuda/entry.h"
#include "multihead/kernels/cuda/hopper/fragment.h"
#include "multihead/kernels/cuda/hopper/maps.h"
#include "multihead/kernels/cuda/hopper/tile.h"
#include "multihead/kernels/cuda/launch.h"
#include "multihead/kernels/cuda/plan.h"

namespace mh::kernels::cuda {
namespace {

struct Split {
  float *o, *lse;     // (units, group, D) and (units, group)
  int chunks, units;  // chunks: the most that a sequence may have
};

MH_DEVICE uint32_t transpose_matrix(uint32_t x) {
  uint32_t y;
  asm("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(y) : "r"(x));
  return y;
}
template <class T>
MH_DEVICE void multiply(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  if constexpr (std::is_same_v<T, __half>)
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  else
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// The keys of unit u: a chunk of its sequence, cut to what the mask keeps.
struct Unit {
  int b, hk, first, last;
  Span span;
};
MH_DEVICE Unit unit_at(const Call& call, const Split& split, int u) {
  Unit unit;
  const int head = u / split.chunks, c = u - head * split.chunks;
  unit.b = head / call.Hkv;
  unit.hk = head - unit.b * call.Hkv;
  unit.span = span_of(call, unit.b);
  const Interval mask = interval_of(call.options, unit.span);
  const int each = decode_chunk(unit.span.k_len);
  unit.first = max(c * each, mask.low(0) / 16 * 16);
  unit.last = min((c + 1) * each, mask.high(0));
  return unit;
}

constexpr int kKeys = 16;

template <class T, int D, int W, int kStages>
__global__ __launch_bounds__(W * 32, 1) void decode_chunks_kernel(const __grid_constant__ CUtensorMap map_k,
                                                                  const __grid_constant__ CUtensorMap map_v,
                                                                  const __grid_constant__ Call call,
                                                                  const Split split) {
  constexpr int kBytes = kKeys * D * 2;
  extern __shared__ uint8_t raw[];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, t = lane % 4, group = call.H / call.Hkv;
  const uint32_t all = (shared_address(raw) + 1023) & ~1023u, base = all + warp * kStages * 2 * kBytes,
                 bar = all + W * kStages * 2 * kBytes + warp * kStages * 8;
  asm volatile("griddepcontrol.launch_dependents;");
  if (lane == 0) {
    for (int i = 0; i < kStages; ++i) barrier_init(bar + 8 * i, 1);
    barrier_init_fence();
  }
  __syncwarp();
  const int step = gridDim.x * W, first_unit = warp * gridDim.x + blockIdx.x;
  int lu = first_unit, ls = 0, lk = 0, l_last = 0, l_row = 0, l_head = 0,
      l_entry = 0;    // the loader: unit, stage, key inside the unit
  auto enter = [&] {  // the next unit with keys; worked out once, since it divides
    for (; lu < split.units; lu += step) {
      const Unit unit = unit_at(call, split, lu);
      if (unit.first >= unit.last) continue;
      lk = unit.first, l_last = unit.last, l_row = unit.span.k_begin, l_head = unit.hk, l_entry = unit.span.batch;
      return;
    }
  };
  auto issue = [&] {
    if (lu >= split.units) return;
    if (lane == 0) {
      barrier_expect(bar + 8 * ls, 2 * kBytes);
      const uint32_t to = base + ls * 2 * kBytes;
      if constexpr (D > 64) {
        tma_load_once(to, &map_k, bar + 8 * ls, l_row + lk, l_head, l_entry);
        tma_load_once(to + kBytes, &map_v, bar + 8 * ls, l_row + lk, l_head, l_entry);
      } else {
        tma_load(to, &map_k, bar + 8 * ls, 0, l_row + lk, l_head, l_entry);
        tma_load(to + kBytes, &map_v, bar + 8 * ls, 0, l_row + lk, l_head, l_entry);
      }
    }
    if (++ls == kStages) ls = 0;
    lk += kKeys;
    if (lk < l_last) return;
    lu += step;
    enter();
  };
  enter();
  for (int i = 0; i < kStages; ++i) issue();
  int st = 0, ph = 0;
  const float scale_log2 = call.options.scale[0] * kLog2e;
  const int kr = lane & 15, ku = lane >> 4, vr = (lane & 7) + (lane >> 4) * 8, vu = (lane >> 3) & 1;
  for (int u = first_unit; u < split.units; u += step) {
    const Unit unit = unit_at(call, split, u);
    const int low = interval_of(call.options, unit.span).low(0);
    uint32_t qb[D / 16][2];
    const T* q = static_cast<const T*>(call.q.data) +
                 call.q.at(unit.span.batch, unit.hk * group + (g < group ? g : 0), unit.span.q_begin) + 2 * t;
#pragma unroll
    for (int k = 0; k < D / 16; ++k) {
      qb[k][0] = g < group ? *reinterpret_cast<const uint32_t*>(q + k * 16) : 0u;
      qb[k][1] = g < group ? *reinterpret_cast<const uint32_t*>(q + k * 16 + 8) : 0u;
    }
    float o[D / 16][4] = {}, ref[2] = {0.f, 0.f}, sum[2] = {0.f, 0.f};
    bool first = true;
    for (int k0 = unit.first; k0 < unit.last; k0 += kKeys) {
      barrier_wait(bar + 8 * st, ph);
      const uint32_t sK = base + st * 2 * kBytes, sV = sK + kBytes;
      float s[4] = {}, s2[4] = {};
      uint32_t ka[D / 16][4], va[D / 16][4];
#pragma unroll
      for (int k = 0; k < D / 16; ++k)
        load_matrix(ka[k], sK + (k / 4) * kKeys * 128 + kr * 128 + ((((k % 4) * 2 + ku) ^ (kr & 7)) << 4));
#pragma unroll
      for (int i = 0; i < D / 16; ++i)
        load_matrix_transposed(va[i], sV + (i / 4) * kKeys * 128 + vr * 128 + ((((i % 4) * 2 + vu) ^ (vr & 7)) << 4));
#pragma unroll
      for (int k = 0; k < D / 16; k += 2) {
        multiply<T>(s, ka[k], qb[k][0], qb[k][1]);
        multiply<T>(s2, ka[k + 1], qb[k + 1][0], qb[k + 1][1]);
      }
      __syncwarp();
      issue();  // all of the stage is in registers: it goes back
#pragma unroll
      for (int x = 0; x < 4; ++x) s[x] = (s[x] + s2[x]) * scale_log2;
      if (k0 + kKeys > unit.last || k0 < low) {
        // What is dropped must not meet the values either: 0 · NaN is NaN. Row r of a value fragment is key 2t + r % 2
        // + 8 (r / 2).
        auto dropped = [&](int key) { return key >= unit.last || key < low; };
        if (dropped(k0 + g)) s[0] = s[1] = -INFINITY;
        if (dropped(k0 + g + 8)) s[2] = s[3] = -INFINITY;
        const uint32_t near = (dropped(k0 + 2 * t) ? 0u : 0xFFFFu) | (dropped(k0 + 2 * t + 1) ? 0u : 0xFFFF0000u);
        const uint32_t far = (dropped(k0 + 2 * t + 8) ? 0u : 0xFFFFu) | (dropped(k0 + 2 * t + 9) ? 0u : 0xFFFF0000u);
#pragma unroll
        for (int i = 0; i < D / 16; ++i) {
          va[i][0] &= near;
          va[i][1] &= near;
          va[i][2] &= far;
          va[i][3] &= far;
        }
      }
      const float m0 = fmaxf(s[0], s[2]), m1 = fmaxf(s[1], s[3]);
      if (first || __any_sync(~0u, m0 > ref[0] + 8.f || m1 > ref[1] + 8.f)) {  // rare: the reference moves
        float n[2] = {m0, m1};
#pragma unroll
        for (int h = 0; h < 2; ++h) {
          for (int x = 4; x < 32; x *= 2) n[h] = fmaxf(n[h], __shfl_xor_sync(~0u, n[h], x));
          if (!first) n[h] = fmaxf(n[h], ref[h]);
          if (n[h] == -INFINITY) n[h] = 0.f;
          const float f = first ? 0.f : exp2_fast(ref[h] - n[h]);
          sum[h] *= f;
          ref[h] = n[h];
#pragma unroll
          for (int i = 0; i < D / 16; ++i) {
            o[i][h] *= f;
            o[i][2 + h] *= f;
          }
        }
        first = false;
      }
      s[0] = exp2_fast(s[0] - ref[0]);
      s[1] = exp2_fast(s[1] - ref[1]);
      s[2] = exp2_fast(s[2] - ref[0]);
      s[3] = exp2_fast(s[3] - ref[1]);
      sum[0] += s[0] + s[2];
      sum[1] += s[1] + s[3];
      const uint32_t b0 = transpose_matrix(pack<T>(s[0], s[1])), b1 = transpose_matrix(pack<T>(s[2], s[3]));
#pragma unroll
      for (int i = 0; i < D / 16; ++i) multiply<T>(o[i], va[i], b0, b1);
      if (++st == kStages) {
        st = 0;
        ph ^= 1;
      }
    }
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      float l = sum[h];
      for (int x = 4; x < 32; x *= 2) l += __shfl_xor_sync(~0u, l, x);
      const int row = 2 * t + h;
      const float inverse = l > 0.f ? 1.f / l : 0.f;
      if (row < group) {
        float* to = split.o + (static_cast<int64_t>(u) * group + row) * D + g;
#pragma unroll
        for (int i = 0; i < D / 16; ++i) {
          to[16 * i] = l == 0.f ? 0.f : o[i][h] * inverse;
          to[16 * i + 8] = l == 0.f ? 0.f : o[i][2 + h] * inverse;
        }
        if (g == 0) split.lse[static_cast<int64_t>(u) * group + row] = l == 0.f ? -INFINITY : ref[h] + __log2f(l);
      }
    }
  }
}

// One block a head: four groups of D threads take a quarter of the chunks each, then the four are added in order. (One
// group over all the chunks cost 37 of 172 µs at 131072 keys on an H200: too few loads in flight.)
template <class T, int D>
__global__ __launch_bounds__(4 * D) void join_chunks(const __grid_constant__ Call call, const Split split) {
  __shared__ float w[256], part[4][D], red[2];
  asm volatile("griddepcontrol.wait;" ::: "memory");
  const int group = call.H / call.Hkv, h = blockIdx.x % call.H, b = blockIdx.x / call.H, hk = h / group,
            row = h - hk * group;
  const int d = threadIdx.x % D, q = threadIdx.x / D;
  const Span span = span_of(call, b);
  const int chunks = decode_chunks(span.k_len);
  const int64_t unit = static_cast<int64_t>(b * call.Hkv + hk) * split.chunks;
  const float *lse = split.lse + unit * group + row, *o = split.o + (unit * group + row) * D + d;
  for (int i = threadIdx.x; i < chunks; i += 4 * D) w[i] = lse[static_cast<int64_t>(i) * group];
  __syncthreads();
  if (threadIdx.x < 32) {
    float m = -INFINITY, l = 0.f;
    for (int i = threadIdx.x; i < chunks; i += 32) m = fmaxf(m, w[i]);
    for (int x = 16; x; x >>= 1) m = fmaxf(m, __shfl_xor_sync(~0u, m, x));
    if (m == -INFINITY) m = 0.f;
    for (int i = threadIdx.x; i < chunks; i += 32) {
      const float f = exp2_fast(w[i] - m);
      w[i] = f;
      l += f;
    }
    for (int x = 16; x; x >>= 1) l += __shfl_xor_sync(~0u, l, x);
    if (threadIdx.x == 0) {
      red[0] = m;
      red[1] = l;
    }
  }
  __syncthreads();
  const int each = (chunks + 3) / 4, end = min(chunks, (q + 1) * each);
  float a = 0.f;
#pragma unroll 16
  for (int i = q * each; i < end; ++i) a = fmaf(w[i], o[static_cast<int64_t>(i) * group * D], a);
  part[q][d] = a;
  __syncthreads();
  if (q == 0 && span.q_len > 0) {
    const float l = red[1];
    a = ((part[0][d] + part[1][d]) + part[2][d]) + part[3][d];
    static_cast<T*>(call.o.data)[call.o.at(span.batch, h, span.q_begin, d)] = static_cast<T>(l == 0.f ? 0.f : a / l);
    if (d == 0 && call.lse)
      static_cast<float*>(call.lse.data)[call.lse.at(span.batch, h, span.q_begin)] =
          l == 0.f ? -INFINITY : (red[0] + __log2f(l)) * kLn2;
  }
}

template <class T, int D>
cudaError_t run(const Call& call, const Split& split, cudaStream_t stream) {
  constexpr int W = 8, kStages = D == 128 ? 3 : 6, kShared = W * kStages * 2 * kKeys * D * 2 + W * kStages * 8 + 1024;
  CUtensorMap k, v;
  if (!encode(k, Box{call.k, call.Hkv, call.k_rows, D}, call.batch, kKeys, D > 64) ||
      !encode(v, Box{call.v, call.Hkv, call.k_rows, D}, call.batch, kKeys, D > 64))
    return cudaErrorInvalidValue;
  int device = 0, sms = 1;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device);
  const cudaError_t error =
      launch(decode_chunks_kernel<T, D, W, kStages>, Grid{dim3(split.units < sms ? split.units : sms), W * 32, kShared},
             stream, k, v, call, split);
  if (error != cudaSuccess) return error;
  return launch(join_chunks<T, D>, Grid{dim3(call.B * call.H), 4 * D, 0, true}, stream, call, split);
}

}  // namespace

cudaError_t decode_hopper(const Call& call, float* partial, float* partial_lse, cudaStream_t stream) {
  Split split{partial, partial_lse, most_decode_chunks(call.Tk), 0};
  split.units = call.B * call.Hkv * split.chunks;
  const bool f16 = call.q.type == Element::f16;
  if (call.Dk == 128) return f16 ? run<__half, 128>(call, split, stream) : run<__nv_bfloat16, 128>(call, split, stream);
  return f16 ? run<__half, 64>(call, split, stream) : run<__nv_bfloat16, 64>(call, split, stream);
}

}  // namespace mh::kernels::cuda
