// dK and dV on wgmma: keys stay, queries stream. Sᵀ = K·Qᵀ, dPᵀ = V·dOᵀ, dV += Pᵀ·dO, dK += dSᵀ·Q.
// K (and V where registers allow) wait in registers as the A operand: shared memory is what binds here. S and dP share
// one set of accumulators; P is kept in 16 bits and unpacked for dS. S of the next query block flies behind dK of this
// one.
//
// Registers are short (dK, dV, S and P take 212 of 240 at D 128): what a mask needs waits in shared memory. The
// producer says with each stage which query block it holds and whose keys it cuts; the rows that keep a key are worked
// out once a tile.
#pragma once

#include <type_traits>

#include "multihead/kernels/cuda/hopper/fragment.h"
#include "multihead/kernels/cuda/hopper/task.h"
#include "multihead/kernels/cuda/hopper/tile.h"

namespace mh::kernels::cuda {

// kKSteps, kVSteps: how many 16-wide steps of K and of V are kept in registers.
template <class T_, int D_, int BM_, int kStages_, int kKSteps_, int kVSteps_, bool kMasked_>
struct DkvShape {
  using T = T_;
  static constexpr int D = D_, kGroups = 2, BN = 64 * kGroups, BM = BM_, kStages = kStages_, kChunks = D_ / 64;
  static constexpr int kKSteps = kKSteps_, kVSteps = kVSteps_;
  static constexpr bool kMasked = kMasked_, kInRegisters = kKSteps_ * 16 == D_ && kVSteps_ * 16 == D_;
  static constexpr bool kTie = kKSteps_ > 0 || BM_ > 64;
  static constexpr int kKeyBytes = BN * D * 2, kRowBytes = BM * D * 2;
  static constexpr int kShared = 2 * kKeyBytes + kStages * (2 * kRowBytes + 2 * BM * 4) + BN * 8 + 256 + 1024,
                       kThreads = 128 * (kGroups + 1);
  static constexpr int kProducerRegisters = 24, kConsumerRegisters = 240;
};

template <class C>
__global__ __launch_bounds__(C::kThreads, 1) void hopper_dkv(const __grid_constant__ CUtensorMap map_q,
                                                             const __grid_constant__ CUtensorMap map_g,
                                                             const __grid_constant__ CUtensorMap map_k,
                                                             const __grid_constant__ CUtensorMap map_v,
                                                             const __grid_constant__ Call call, const Task task) {
  using T = typename C::T;
  constexpr int D = C::D, BM = C::BM, BN = C::BN, kStages = C::kStages, kWarps = 4 * C::kGroups;
  extern __shared__ uint8_t raw[];
  const uint32_t base = (shared_address(raw) + 1023) & ~1023u;
  const uint32_t sK = base, sV = sK + C::kKeyBytes, sQ = sV + C::kKeyBytes, sG = sQ + kStages * C::kRowBytes,
                 sL = sG + kStages * C::kRowBytes, sB = sL + kStages * BM * 8, bars = sB + BN * 8;
  const uint32_t kv_full = bars, kv_empty = bars + 8, full = bars + 16, empty = full + 8 * kStages;
  volatile int* slot =
      reinterpret_cast<volatile int*>(raw + (bars - shared_address(raw)) + 224);  // the tile, then a code per stage
  if (threadIdx.x == 0) {
    barrier_init(kv_full, 1);
    barrier_init(kv_empty, kWarps * kReleases);
    for (int i = 0; i < kStages; ++i) {
      barrier_init(full + 8 * i, 1);
      barrier_init(empty + 8 * i, kWarps * kReleases);
    }
    barrier_init_fence();
  }
  __syncthreads();
  const int group = call.H / call.Hkv;
  struct Range {
    int first, last;
  };
  auto query_blocks = [&](const Interval& mask, const Span& span,
                          int j) {  // at least one block: its dk and dv come out as 0
    Range range{0, max(1, (span.q_len + BM - 1) / BM)};
    if constexpr (C::kMasked) {
      range.first = min(mask.first_row(j * BN), span.q_len) / BM;
      range.last = (mask.end_row(j * BN + BN, span.q_len) + BM - 1) / BM;
      if (range.last <= range.first) range.last = range.first + 1;
    }
    return range;
  };
  auto tile_keys = [&](const TileAt& at) {
    return C::kMasked ? task.blocks - 1 - at.m : at.m;
  };  // the longest come first

  if (threadIdx.x < 128) {
    give_registers<C::kProducerRegisters>();
    if (threadIdx.x == 0) {
      int tile = blockIdx.x, st = 0, ph = 0, kph = 0;
      while (true) {
        const int next = static_cast<int>(gridDim.x) + atomicAdd(task.counter, 1);
        barrier_wait(kv_empty, kph ^ 1);
        kph ^= 1;
        if (tile >= task.tiles) {
          slot[0] = -1;
          barrier_arrive(kv_full);
          if (atomicAdd(task.counter + 1, 1) == static_cast<int>(gridDim.x) - 1) {
            task.counter[0] = 0;
            task.counter[1] = 0;
            __threadfence();
          }
          break;
        }
        const TileAt at = tile_at<C::kMasked>(task, tile, call.Hkv);
        const Span span = span_of(call, at.b);
        const int j = tile_keys(at), hk = at.h;
        Interval mask = interval_of(call.options, span);
        const Range range = query_blocks(mask, span, j);
        mask.k_len = kFar;  // keys past the end are rows of their own here: nothing of them is stored
        slot[0] = tile;
        barrier_expect(kv_full, 2 * C::kKeyBytes);
        load_tile<C::kChunks, BN>(sK, &map_k, kv_full, span.k_begin + j * BN, hk, span.batch, task.joined);
        load_tile<C::kChunks, BN>(sV, &map_v, kv_full, span.k_begin + j * BN, hk, span.batch, task.joined);
        for (int h = hk * group; h < hk * group + group; ++h)
          for (int i = range.first; i < range.last; ++i) {
            barrier_wait(empty + 8 * st, ph ^ 1);
            if constexpr (C::kMasked) {
              int code = i << C::kGroups;
              for (int g = 0; g < C::kGroups; ++g)
                code |= !mask.whole(i * BM, i * BM + BM, j * BN + g * 64, j * BN + g * 64 + 64) << g;
              slot[1 + st] = code;
            }
            barrier_expect(full + 8 * st, 2 * C::kRowBytes + 2 * BM * 4);
            const int64_t r = (static_cast<int64_t>(at.b) * call.H + h) * task.padded + i * BM;
            load_tile<C::kChunks, BM>(sQ + st * C::kRowBytes, &map_q, full + 8 * st, span.q_begin + i * BM, h,
                                      span.batch, task.joined);
            load_tile<C::kChunks, BM>(sG + st * C::kRowBytes, &map_g, full + 8 * st, span.q_begin + i * BM, h,
                                      span.batch, task.joined);
            bulk_load(sL + st * BM * 8, task.lse2 + r, BM * 4, full + 8 * st);
            bulk_load(sL + st * BM * 8 + BM * 4, task.delta + r, BM * 4, full + 8 * st);
            if (++st == kStages) {
              st = 0;
              ph ^= 1;
            }
          }
        tile = next;
      }
    }
  } else {
    take_registers<C::kConsumerRegisters>();
    const int wg = threadIdx.x / 128 - 1, lane = threadIdx.x % 32, warp = (threadIdx.x / 32) % 4;
    const float scale = call.options.scale[0], scale_log2 = scale * kLog2e;
    int2* bounds = reinterpret_cast<int2*>(raw + (sB - shared_address(raw)));  // the rows [x, y) that keep each key
    int st = 0, ph = 0, kph = 0;
    float s[BM / 2], dk[D / 2], dv[D / 2];
    uint32_t pp[BM / 4], kf[C::kKSteps ? C::kKSteps * 4 : 1], vf[C::kVSteps ? C::kVSteps * 4 : 1];
    auto by_queries = [&](uint32_t sa, auto& f, auto steps_, uint32_t sb) {
      constexpr int steps = decltype(steps_)::value;
      const uint64_t a = descriptor_k(sa), b = descriptor_k(sb);
      // A predicate ptxas cannot fold ties the accumulators of S and dP to the same registers.
      const int zero = C::kTie ? (task.padded < 0) : 0;
      wgmma_fence();
#pragma unroll
      for (int c = 0; c < C::kChunks; ++c)
#pragma unroll
        for (int k = 0; k < 4; ++k) {
          if (c * 4 + k < steps)
            Wgmma<BM, T>::template rs<0>(s, f + (c * 4 + k) * 4, advance(b, c * BM * 128 + k * 32),
                                         c + k > 0 ? 1 : zero);
          else
            Wgmma<BM, T>::ss(s, advance(a, c * BN * 128 + k * 32), advance(b, c * BM * 128 + k * 32),
                             c + k > 0 ? 1 : zero);
        }
      wgmma_commit();
    };
    auto by_columns = [&](float(&o)[D / 2], uint32_t sb, int add) {
      const uint64_t b = descriptor_mn(sb, BM * 128);
      wgmma_fence();
#pragma unroll
      for (int k = 0; k < BM / 16; ++k) Wgmma<D, T>::template rs<1>(o, pp + 4 * k, advance(b, k * 2048), add | (k > 0));
      wgmma_commit();
    };
    using KSteps = std::integral_constant<int, C::kKSteps>;
    using VSteps = std::integral_constant<int, C::kVSteps>;
    while (true) {
      barrier_wait(kv_full, kph);
      kph ^= 1;
      const int tile = slot[0];
      if (tile < 0) break;
      int total;
      {
        const TileAt at = tile_at<C::kMasked>(task, tile, call.Hkv);
        const Span span = span_of(call, at.b);
        const Interval mask = interval_of(call.options, span);
        const Range range = query_blocks(mask, span, tile_keys(at));
        total = (range.last - range.first) * group;
        if constexpr (C::kMasked) {
          __syncwarp();
          if (lane < 16) {
            const int key = tile_keys(at) * BN + wg * 64 + warp * 16 + lane;
            bounds[wg * 64 + warp * 16 + lane] = make_int2(mask.first_row(key), mask.end_row(key + 1, kFar));
          }
          __syncwarp();
        }
      }
      const uint32_t aK = sK + wg * 64 * 128, aV = sV + wg * 64 * 128;
      {
        const int r = warp * 16 + (lane & 15), u = lane >> 4;
#pragma unroll
        for (int k = 0; k < D / 16; ++k) {
          const uint32_t o = (k / 4) * BN * 128 + r * 128 + ((((k % 4) * 2 + u) ^ (r & 7)) << 4);
          if (k < C::kKSteps) load_matrix(kf + 4 * k, aK + o);
          if (k < C::kVSteps) load_matrix(vf + 4 * k, aV + o);
        }
        if constexpr (C::kKSteps > 0) pin(kf);
        if constexpr (C::kVSteps > 0) pin(vf);
        if (C::kInRegisters) warp_release(kv_empty, lane);
      }
      for (int t = 0; t < total; ++t) {
        const float2* row =
            reinterpret_cast<const float2*>(raw + (sL - shared_address(raw)) + st * BM * 8) + (lane & 3);
        barrier_wait(full + 8 * st, ph);
        by_queries(aK, kf, KSteps{}, sQ + st * C::kRowBytes);
        wgmma_wait<1>();  // dK of the last block is done: its stage goes back
        pin(dk);
        pin(pp);
        if (t > 0) warp_release(empty + 8 * (st == 0 ? kStages - 1 : st - 1), lane);
        wgmma_wait<0>();
        pin(s);
#pragma unroll
        for (int c = 0; c < BM / 8; ++c) {
          const float2 l = row[4 * c];
          s[4 * c] = exp2_fast(fmaf(s[4 * c], scale_log2, -l.x));
          s[4 * c + 1] = exp2_fast(fmaf(s[4 * c + 1], scale_log2, -l.y));
          s[4 * c + 2] = exp2_fast(fmaf(s[4 * c + 2], scale_log2, -l.x));
          s[4 * c + 3] = exp2_fast(fmaf(s[4 * c + 3], scale_log2, -l.y));
        }
        if constexpr (C::kMasked) {
          const int code = slot[1 + st];
          if (code >> wg & 1) {
            const int2 near = bounds[wg * 64 + warp * 16 + lane / 4], far = bounds[wg * 64 + warp * 16 + lane / 4 + 8];
            mask_rows(s, {{near.x, far.x}, {near.y, far.y}}, (code >> C::kGroups) * BM + (lane % 4) * 2, 0.f);
          }
        }
#pragma unroll
        for (int e = 0; e < BM / 4; ++e) pp[e] = pack<T>(s[2 * e], s[2 * e + 1]);
        pin(pp);
        by_queries(aV, vf, VSteps{}, sG + st * C::kRowBytes);  // dP into the same accumulators
        by_columns(dv, sG + st * C::kRowBytes, t > 0);
        wgmma_wait<1>();
        pin(s);
        row += BM / 2;
#pragma unroll
        for (int c = 0; c < BM / 8; ++c) {
          const float2 l = row[4 * c], p0 = unpack<T>(pp[2 * c]), p1 = unpack<T>(pp[2 * c + 1]);
          s[4 * c] = p0.x * (s[4 * c] - l.x);
          s[4 * c + 1] = p0.y * (s[4 * c + 1] - l.y);
          s[4 * c + 2] = p1.x * (s[4 * c + 2] - l.x);
          s[4 * c + 3] = p1.y * (s[4 * c + 3] - l.y);
        }
        pin(s);
        wgmma_wait<0>();
        pin(dv);
        pin(pp);
#pragma unroll
        for (int e = 0; e < BM / 4; ++e) pp[e] = pack<T>(s[2 * e], s[2 * e + 1]);
        pin(pp);
        const uint32_t q = sQ + st * C::kRowBytes;
        if (++st == kStages) {
          st = 0;
          ph ^= 1;
        }
        by_columns(dk, q, t > 0);
      }
      wgmma_wait<0>();
      pin(dk);
      warp_release(empty + 8 * (st == 0 ? kStages - 1 : st - 1), lane);
      if (!C::kInRegisters) warp_release(kv_empty, lane);
      int done = tile;
      asm volatile("" : "+r"(done));
      const TileAt at = tile_at<C::kMasked>(task, done, call.Hkv);
      const Span span = span_of(call, at.b);
      const int hk = at.h, key0 = tile_keys(at) * BN + wg * 64 + warp * 16 + lane / 4;
      const bool inside = key0 < span.k_len, next = key0 + 8 < span.k_len;
      const bool bad = __any_sync(~0u, not_finite(dk, inside, next) || not_finite(dv, inside, next));
      const float scaled[2] = {scale, scale}, plain[2] = {1.f, 1.f};
      store_rows<T>(dk, static_cast<T*>(call.dk.data) + call.dk.at(span.batch, hk, span.k_begin), call.dk.stride[2],
                    key0, span.k_len, call.Dk, scaled, lane);
      store_rows<T>(dv, static_cast<T*>(call.dv.data) + call.dv.at(span.batch, hk, span.k_begin), call.dv.stride[2],
                    key0, span.k_len, call.Dv, plain, lane);
      // Mended by a kernel of its own: inlined here it would cost registers that the loop needs.
      if (lane == 0) task.flags[done * 16 + wg * 4 + warp] = bad;
    }
  }
}

}  // namespace mh::kernels::cuda
