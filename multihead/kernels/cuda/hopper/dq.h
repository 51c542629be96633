// dQ on wgmma: query rows stay, keys stream. S = Q·Kᵀ, dP = dO·Vᵀ, dQ += dS·K.
#pragma once

#include <type_traits>

#include "multihead/kernels/cuda/hopper/fragment.h"
#include "multihead/kernels/cuda/hopper/task.h"
#include "multihead/kernels/cuda/hopper/tile.h"

namespace mh::kernels::cuda {

template <class T_, int D_, int kGroups_, int BN_, int kKStages_, int kVStages_, bool kMasked_>
struct DqShape {
  using T = T_;
  static constexpr int D = D_, kGroups = kGroups_, BM = 64 * kGroups_, BN = BN_, kChunks = D_ / 64;
  static constexpr int kKStages = kKStages_, kVStages = kVStages_;
  static constexpr bool kMasked = kMasked_;
  static constexpr int kQBytes = BM * D * 2, kBlockBytes = BN * D * 2;
  static constexpr int kShared = 2 * kQBytes + (kKStages + kVStages) * kBlockBytes + 256 + 2 * sizeof(Facts) + 1024,
                       kThreads = 128 * (kGroups_ + 1);
  static constexpr int kProducerRegisters = kGroups == 2 ? 40 : 32, kConsumerRegisters = kGroups == 2 ? 232 : 160;
};

template <class C>
__global__ __launch_bounds__(C::kThreads, 1) void hopper_dq(const __grid_constant__ CUtensorMap map_q,
                                                            const __grid_constant__ CUtensorMap map_g,
                                                            const __grid_constant__ CUtensorMap map_k,
                                                            const __grid_constant__ CUtensorMap map_v,
                                                            const __grid_constant__ Call call, const Task task) {
  using T = typename C::T;
  constexpr int D = C::D, BM = C::BM, BN = C::BN, kKStages = C::kKStages, kVStages = C::kVStages,
                kWarps = 4 * C::kGroups;
  extern __shared__ uint8_t raw[];
  const uint32_t base = (shared_address(raw) + 1023) & ~1023u;
  const uint32_t sQ = base, sG = sQ + C::kQBytes, sK = sG + C::kQBytes, sV = sK + kKStages * C::kBlockBytes,
                 bars = sV + kVStages * C::kBlockBytes;
  const uint32_t q_full = bars, q_empty = bars + 8, k_full = bars + 16, k_empty = k_full + 8 * kKStages,
                 v_full = k_empty + 8 * kKStages, v_empty = v_full + 8 * kVStages;
  Facts* told = reinterpret_cast<Facts*>(raw + (bars - shared_address(raw)) + 256);  // of this tile and the next
  if (threadIdx.x == 0) {
    barrier_init(q_full, 1);
    barrier_init(q_empty, kWarps * kReleases);
    for (int i = 0; i < kKStages; ++i) {
      barrier_init(k_full + 8 * i, 1);
      barrier_init(k_empty + 8 * i, kWarps);
    }
    for (int i = 0; i < kVStages; ++i) {
      barrier_init(v_full + 8 * i, 1);
      barrier_init(v_empty + 8 * i, kWarps);
    }
    barrier_init_fence();
  }
  __syncthreads();
  auto tile_blocks = [&](const Interval& mask, int m) { return blocks_of(mask, m * BM, m * BM + BM, BN); };

  if (threadIdx.x < 128) {
    give_registers<C::kProducerRegisters>();
    if (threadIdx.x == 0) {
      int tile = blockIdx.x, st = 0, ph = 0, stv = 0, phv = 0, qph = 0, place = 0;
      while (true) {
        const int next = static_cast<int>(gridDim.x) + atomicAdd(task.counter, 1);
        barrier_wait(q_empty, qph ^ 1);
        if (tile >= task.tiles) {
          told[place].tile = -1;
          barrier_arrive(q_full);
          if (atomicAdd(task.counter + 1, 1) == static_cast<int>(gridDim.x) - 1) {
            task.counter[0] = 0;
            task.counter[1] = 0;
            __threadfence();
          }
          break;
        }
        const TileAt at = tile_at<C::kMasked>(task, tile, call.H);
        const Span span = span_of(call, at.b);
        const Interval mask = interval_of(call.options, span);
        const Blocks blocks = tile_blocks(mask, at.m);
        const int hk = at.h / (call.H / call.Hkv), row = span.q_begin + at.m * BM;
        told[place].tile = tile;
        tell<BM, BN>(told[place], call, at, span, mask, blocks, call.dq);
        place ^= 1;
        barrier_expect(q_full, 2 * C::kQBytes);
        load_tile<C::kChunks, BM>(sQ, &map_q, q_full, row, at.h, span.batch, task.joined);
        load_tile<C::kChunks, BM>(sG, &map_g, q_full, row, at.h, span.batch, task.joined);
        qph ^= 1;
        for (int n = blocks.last - 1; n >= blocks.first; --n) {
          barrier_wait(k_empty + 8 * st, ph ^ 1);
          barrier_expect(k_full + 8 * st, C::kBlockBytes);
          load_tile<C::kChunks, BN>(sK + st * C::kBlockBytes, &map_k, k_full + 8 * st, span.k_begin + n * BN, hk,
                                    span.batch, task.joined);
          if (++st == kKStages) {
            st = 0;
            ph ^= 1;
          }
          barrier_wait(v_empty + 8 * stv, phv ^ 1);
          barrier_expect(v_full + 8 * stv, C::kBlockBytes);
          load_tile<C::kChunks, BN>(sV + stv * C::kBlockBytes, &map_v, v_full + 8 * stv, span.k_begin + n * BN, hk,
                                    span.batch, task.joined);
          if (++stv == kVStages) {
            stv = 0;
            phv ^= 1;
          }
        }
        tile = next;
      }
    }
  } else {
    take_registers<C::kConsumerRegisters>();
    const int wg = threadIdx.x / 128 - 1, lane = threadIdx.x % 32, warp = (threadIdx.x / 32) % 4;
    const float scale = call.options.scale[0], scale_log2 = scale * kLog2e;
    int st = 0, ph = 0, stv = 0, phv = 0, qph = 0, kp = 0,
        add = 0;  // kp: the stage whose K the pending dQ product reads
    float s[BN / 2], dp[BN / 2], dq[D / 2], l2[2], change[2];
    uint32_t ds[BN / 4];
    auto take_turn = [&] { named_sync(1 + wg, 256); };
    auto pass_turn = [&] { named_arrive(1 + (wg + 1 == C::kGroups ? 0 : wg + 1), 256); };
    if (wg == C::kGroups - 1) named_arrive(1, 256);
    const uint64_t dQ = descriptor_k(sQ + wg * 64 * 128), dG = descriptor_k(sG + wg * 64 * 128);
    auto by_keys = [&](float(&acc)[BN / 2], uint64_t a, uint64_t b) {
      wgmma_fence();
#pragma unroll
      for (int c = 0; c < C::kChunks; ++c)
#pragma unroll
        for (int k = 0; k < 4; ++k)
          Wgmma<BN, T>::ss(acc, advance(a, c * BM * 128 + k * 32), advance(b, c * BN * 128 + k * 32), c + k > 0);
      wgmma_commit();
    };
    auto add_dq = [&] {
      const uint64_t b = descriptor_mn(sK + kp * C::kBlockBytes, BN * 128);
      wgmma_fence();
#pragma unroll
      for (int k = 0; k < BN / 16; ++k)
        Wgmma<D, T>::template rs<1>(dq, ds + 4 * k, advance(b, k * 2048), add | (k > 0));
      wgmma_commit();
      add = 1;
    };
    using Yes = std::true_type;
    using No = std::false_type;
    while (true) {
      barrier_wait(q_full, qph);
      const Facts& facts = told[qph];
      qph ^= 1;
      if (facts.tile < 0) break;
      const int first = facts.first, last = facts.last;
      RowEnds ends;
      {
        const int row = facts.row + wg * 64 + warp * 16 + lane / 4;
        ends = row_ends(mask_of(facts, call.options), row);
        const int64_t at = (static_cast<int64_t>(facts.batch) * call.H + facts.head) * task.padded + row;
#pragma unroll
        for (int r = 0; r < 2; ++r) {
          l2[r] = task.lse2[at + r * 8];
          change[r] = task.delta[at + r * 8];
        }
      }
      auto weights = [&] {
#pragma unroll
        for (int i = 0; i < BN / 2; ++i) s[i] = exp2_fast(fmaf(s[i], scale_log2, -l2[(i >> 1) & 1]));
      };
      auto gradient = [&](int n, auto masked_) {
#pragma unroll
        for (int i = 0; i < BN / 2; ++i) s[i] *= dp[i] - change[(i >> 1) & 1];
        if constexpr (decltype(masked_)::value) mask_rows(s, ends, n * BN + (lane % 4) * 2, 0.f);
      };
      auto pack_ds = [&] {
#pragma unroll
        for (int i = 0; i < BN / 4; ++i) ds[i] = pack<T>(s[2 * i], s[2 * i + 1]);
      };
      auto next_k = [&] {
        if (++st == kKStages) {
          st = 0;
          ph ^= 1;
        }
      };
      auto free_v = [&] {
        if (lane == 0) barrier_arrive(v_empty + 8 * stv);
        if (++stv == kVStages) {
          stv = 0;
          phv ^= 1;
        }
      };
      add = 0;
      barrier_wait(k_full + 8 * st, ph);
      barrier_wait(v_full + 8 * stv, phv);
      take_turn();
      by_keys(s, dQ, descriptor_k(sK + st * C::kBlockBytes));
      by_keys(dp, dG, descriptor_k(sV + stv * C::kBlockBytes));
      pass_turn();
      wgmma_wait<1>();
      pin(s);
      weights();
      wgmma_wait<0>();
      pin(dp);
      free_v();
      gradient(last - 1, Yes{});
      pack_ds();
      kp = st;
      next_k();
      auto step = [&](int n, auto masked) {
        barrier_wait(k_full + 8 * st, ph);
        take_turn();
        by_keys(s, dQ, descriptor_k(sK + st * C::kBlockBytes));
        barrier_wait(v_full + 8 * stv, phv);
        by_keys(dp, dG, descriptor_k(sV + stv * C::kBlockBytes));
        add_dq();
        pass_turn();
        wgmma_wait<2>();
        pin(s);
        weights();
        pin(s);
        wgmma_wait<1>();
        pin(dp);
        free_v();
        if (n == first) warp_release(q_empty, lane);
        gradient(n, masked);
        pin(s);
        wgmma_wait<0>();
        pin(dq);
        pin(ds);
        if (lane == 0) barrier_arrive(k_empty + 8 * kp);
        pack_ds();
        kp = st;
        next_k();
      };
      int n = last - 2;
      if (n < first) warp_release(q_empty, lane);
      if constexpr (C::kMasked)
        for (const int whole = facts.whole_last[wg]; n >= whole; --n) step(n, Yes{});
      for (const int whole = C::kMasked ? facts.whole_first[wg] : first; n >= whole; --n) step(n, No{});
      if constexpr (C::kMasked)
        for (; n >= first; --n) step(n, Yes{});
      add_dq();
      wgmma_wait<0>();
      pin(dq);
      if (lane == 0) barrier_arrive(k_empty + 8 * kp);
      const float factor[2] = {scale, scale};
      const int row = facts.row + wg * 64 + warp * 16 + lane / 4, rows = facts.rows;
      const bool bad = __any_sync(~0u, not_finite(dq, row < rows, row + 8 < rows));
      store_rows<T>(dq, static_cast<T*>(call.dq.data) + facts.at, call.dq.stride[2], row, rows, call.Dk, factor, lane);
      // Mended by a kernel of its own: inlined here it cost up to 12 % of the loop.
      if (lane == 0) task.flags[facts.tile * 16 + wg * 4 + warp] = bad;
    }
    if (wg == 0) named_sync(1, 256);
  }
}

}  // namespace mh::kernels::cuda
