// Attention forward on wgmma. One producer thread drives TMA; 1 to 4 warpgroups of 64 query rows take turns to issue
// products. S(n) = Q·Kᵀ and O += P(n + 1)·V(n + 1) fly together and softmax(n) runs under them, across tiles too.
//
// Fixed: after the masked blocks the row's reference stays where it is: no maximum, no rescale (15-25 % on an H200,
// 2026-11). bf16 P, sums and O have the range of f32, so nothing is lost until a score outgrows its reference by 2^63;
// such a tile is flagged and done again by the online form. f16 P would overflow: always online.
#pragma once

#include <type_traits>

#include "multihead/kernels/cuda/hopper/careful.h"
#include "multihead/kernels/cuda/hopper/options.h"
#include "multihead/kernels/cuda/hopper/task.h"
#include "multihead/kernels/cuda/hopper/tile.h"

namespace mh::kernels::cuda {

template <class T_, int D_, int kGroups_, int BN_, int kStages_, bool kMasked_, bool kTurns_, bool kFixed_, int kPerSm_,
          bool kOptions_>
struct ForwardShape {
  using T = T_;
  static constexpr int D = D_, kGroups = kGroups_, BM = kGroups_ * 64, BN = BN_, kStages = kStages_, kChunks = D_ / 64,
                       kPerSm = kPerSm_;
  static constexpr bool kMasked = kMasked_, kTurns = kTurns_, kFixed = kFixed_, kOptions = kOptions_;
  static constexpr int kQBytes = BM * D * 2, kBlockBytes = BN * D * 2;
  static constexpr int kShared = 2 * kQBytes + 2 * kStages * kBlockBytes + 256 + 16 + 4 * sizeof(Facts) +
                                 1024;  // Q twice, K and V, barriers, alignment
  static constexpr int kThreads = (kGroups + 1) * 128;
  static constexpr bool kHandsOver = kThreads * kPerSm > 256;  // two warpgroups have all the registers they can address
  static constexpr int kProducerRegisters = kGroups == 1 ? 24 : kGroups == 2 ? 40 : 32;
  static constexpr int kConsumerRegisters = kPerSm == 3 ? 136 : kGroups <= 2 ? 232 : kGroups == 3 ? 160 : 112;
};

template <class C>
__global__ __launch_bounds__(C::kThreads, C::kPerSm) void hopper_forward(const __grid_constant__ CUtensorMap map_q,
                                                                         const __grid_constant__ CUtensorMap map_k,
                                                                         const __grid_constant__ CUtensorMap map_v,
                                                                         const __grid_constant__ Call call,
                                                                         const Task task) {
  using T = typename C::T;
  constexpr int D = C::D, BM = C::BM, BN = C::BN, kStages = C::kStages, kWarps = C::kGroups * 4;
  extern __shared__ uint8_t raw[];
  const uint32_t base = (shared_address(raw) + 1023) & ~1023u;
  const uint32_t sQ = base, sK = sQ + 2 * C::kQBytes, sV = sK + kStages * C::kBlockBytes,
                 bars = sV + kStages * C::kBlockBytes;
  const uint32_t q_full = bars, q_empty = bars + 16, all_done = bars + 32, k_full = bars + 40,
                 k_empty = k_full + 8 * kStages, v_full = k_empty + 8 * kStages, v_empty = v_full + 8 * kStages;
  volatile int* any_redo = reinterpret_cast<volatile int*>(raw + (bars - shared_address(raw)) + 256);
  // Tile n is stored while Q of n + 1 is in use and n + 2 is on its way.
  Facts* told = reinterpret_cast<Facts*>(raw + (bars - shared_address(raw)) + 272);
  if (threadIdx.x == 0) {
    tma_prefetch(&map_q);
    tma_prefetch(&map_k);
    tma_prefetch(&map_v);
    for (int i = 0; i < 2; ++i) {
      barrier_init(q_full + 8 * i, 1);
      barrier_init(q_empty + 8 * i, kWarps * kReleases);
    }
    barrier_init(all_done, kWarps);
    *any_redo = 0;
    for (int i = 0; i < kStages; ++i) {
      barrier_init(k_full + 8 * i, 1);
      barrier_init(v_full + 8 * i, 1);
      barrier_init(k_empty + 8 * i, kWarps);
      barrier_init(v_empty + 8 * i, kWarps);
    }
    barrier_init_fence();
  }
  __syncthreads();
  auto tile_blocks = [&](const Interval& mask, int m) { return blocks_of(mask, m * BM, m * BM + BM, BN); };

  if (threadIdx.x < 128) {  // the producer warpgroup
    if constexpr (C::kHandsOver) give_registers<C::kProducerRegisters>();
    if (threadIdx.x == 0) {
      int tile = blockIdx.x, st = 0, ph = 0, stv = 0, phv = 0, again = -1, count = 0;
      while (true) {
        int next = 0, code = -1;
        if (again < 0) {
          if (tile < task.tiles) {
            next = static_cast<int>(gridDim.x) + atomicAdd(task.counter, 1);
            code = tile;
          }
        } else if (*any_redo) {
          for (; again < task.tiles && code < 0; ++again)
            for (int w = 0; w < kWarps; ++w)
              if (static_cast<const volatile uint16_t*>(task.flags)[again * 16 + w] == blockIdx.x) code = tile = again;
        }
        const int qs = count & 1, qph = (count >> 1) & 1;
        if (code < 0) {  // the end of a pass: the consumers drain
          barrier_wait(q_empty + 8 * qs, qph ^ 1);
          told[count & 3].tile = -1;
          barrier_arrive(q_full + 8 * qs);
          ++count;
          if (C::kFixed && again < 0) {
            barrier_wait(all_done, 0);
            again = 0;
            continue;
          }
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
        const int hk = at.h / (call.H / call.Hkv);
        auto load_k = [&](int n) {
          barrier_wait(k_empty + 8 * st, ph ^ 1);
          barrier_expect(k_full + 8 * st, C::kBlockBytes);
          load_tile<C::kChunks, BN>(sK + st * C::kBlockBytes, &map_k, k_full + 8 * st, span.k_begin + n * BN, hk,
                                    span.batch, task.joined);
          if (++st == kStages) {
            st = 0;
            ph ^= 1;
          }
        };
        auto load_v = [&](int n) {
          barrier_wait(v_empty + 8 * stv, phv ^ 1);
          barrier_expect(v_full + 8 * stv, C::kBlockBytes);
          load_tile<C::kChunks, BN>(sV + stv * C::kBlockBytes, &map_v, v_full + 8 * stv, span.k_begin + n * BN, hk,
                                    span.batch, task.joined);
          if (++stv == kStages) {
            stv = 0;
            phv ^= 1;
          }
        };
        barrier_wait(q_empty + 8 * qs, qph ^ 1);
        told[count & 3].tile = code;
        tell<BM, BN>(told[count & 3], call, at, span, mask, blocks, call.o);
        barrier_expect(q_full + 8 * qs, C::kQBytes);
        load_tile<C::kChunks, BM>(sQ + qs * C::kQBytes, &map_q, q_full + 8 * qs, span.q_begin + at.m * BM, at.h,
                                  span.batch, task.joined);
        load_k(blocks.last - 1);
        for (int n = blocks.last - 1; n > blocks.first; --n) {
          load_k(n - 1);
          load_v(n);
        }
        load_v(blocks.first);
        ++count;
        tile = next;
      }
    }
  } else {  // the consumer warpgroups: 64 query rows each
    if constexpr (C::kHandsOver) take_registers<C::kConsumerRegisters>();
    const int wg = threadIdx.x / 128 - 1, lane = threadIdx.x % 32, warp = (threadIdx.x / 32) % 4;
    const float scale = call.options.scale[0], scale_log2 = C::kOptions ? kLog2e : scale * kLog2e;
    int st = 0, ph = 0, stv = 0, phv = 0, count = 0, add = 0;
    float s[BN / 2], o[D / 2], top[2], sum[2], shrink[2], ref[2];
    uint32_t pf[BN / 4];
    auto take_turn = [&] {
      if constexpr (C::kTurns) named_sync(1 + wg, 256);
    };
    auto pass_turn = [&] {
      if constexpr (C::kTurns) named_arrive(1 + (wg + 1 == C::kGroups ? 0 : wg + 1), 256);
    };
    if (C::kTurns && wg == C::kGroups - 1) named_arrive(1, 256);  // warpgroup 0 goes first
    auto qk = [&](int qs) {
      const uint64_t dQ = descriptor_k(sQ + qs * C::kQBytes + wg * 64 * 128),
                     dK = descriptor_k(sK + st * C::kBlockBytes);
      wgmma_fence();
#pragma unroll
      for (int c = 0; c < C::kChunks; ++c)
#pragma unroll
        for (int k = 0; k < 4; ++k)
          Wgmma<BN, T>::ss(s, advance(dQ, c * BM * 128 + k * 32), advance(dK, c * BN * 128 + k * 32), c + k > 0);
      wgmma_commit();
    };
    auto pv = [&] {
      const uint64_t dV = descriptor_mn(sV + stv * C::kBlockBytes, BN * 128);
      wgmma_fence();
#pragma unroll
      for (int k = 0; k < BN / 16; ++k)
        Wgmma<D, T>::template rs<1>(o, pf + 4 * k, advance(dV, k * 2048), add | (k > 0));
      wgmma_commit();
      add = 1;
    };
    auto free_k = [&] {
      if (lane == 0) barrier_arrive(k_empty + 8 * st);
      if (++st == kStages) {
        st = 0;
        ph ^= 1;
      }
    };
    auto free_v = [&] {
      if (lane == 0) barrier_arrive(v_empty + 8 * stv);
      if (++stv == kStages) {
        stv = 0;
        phv ^= 1;
      }
    };
    auto free_q = [&](int qs) { warp_release(q_empty + 8 * qs, lane); };
    auto pack_p = [&] {
#pragma unroll
      for (int i = 0; i < BN / 4; ++i) pf[i] = pack<T>(s[2 * i], s[2 * i + 1]);
    };
    auto maximum = [&](auto first_, auto masked_) {  // raises the reference of each row to its largest score
      constexpr bool first = decltype(first_)::value, masked = C::kOptions || decltype(masked_)::value;
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        float a0 = s[2 * r], a1 = s[2 * r + 1];
        if constexpr (!first) a0 = fmaxf(a0, top[r]);
#pragma unroll
        for (int i = 1; i < BN / 8; ++i) {
          a0 = fmaxf(a0, s[4 * i + 2 * r]);
          a1 = fmaxf(a1, s[4 * i + 2 * r + 1]);
        }
        float a = fmaxf(a0, a1);
        a = fmaxf(a, __shfl_xor_sync(~0u, a, 1));
        a = fmaxf(a, __shfl_xor_sync(~0u, a, 2));
        const float now = (masked && a == -INFINITY) ? 0.f : a * scale_log2;
        if constexpr (first) {
          shrink[r] = 1.f;
          sum[r] = 0.f;
        } else {
          shrink[r] = top[r] == -INFINITY ? 0.f : exp2_fast(top[r] * scale_log2 - now);
          sum[r] *= shrink[r];
        }
        top[r] = a;
        ref[r] = now;
      }
    };
    auto exponentials = [&] {
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        float t0 = 0.f, t1 = 0.f;
#pragma unroll
        for (int i = 0; i < BN / 8; ++i) {
          const float x = exp2_fast(fmaf(s[4 * i + 2 * r], scale_log2, -ref[r])),
                      y = exp2_fast(fmaf(s[4 * i + 2 * r + 1], scale_log2, -ref[r]));
          s[4 * i + 2 * r] = x;
          s[4 * i + 2 * r + 1] = y;
          t0 += x;
          t1 += y;
        }
        sum[r] += t0 + t1;
      }
    };
    using Yes = std::true_type;
    using No = std::false_type;
    auto pairs_at = [&](int place, int n) -> PairsAt {
      const Facts& facts = told[place];
      return {facts.batch, facts.head,     facts.row + wg * 64 + warp * 16 + lane / 4,
              facts.rows,  facts.position, n * BN + (lane % 4) * 2,
              facts.k_len};
    };
    // Of a tile only what the loops read is kept in registers.
    int qs, own, first, last, whole_first, whole_last;  // own: the tile's place in `told`, or -1 at the end
    bool cut;                                           // the last block reaches past the keys
    RowEnds ends;
    auto fetch = [&] {  // the next tile
      qs = count & 1;
      barrier_wait(q_full + 8 * qs, (count >> 1) & 1);
      own = count++ & 3;
      const Facts& facts = told[own];
      if (facts.tile < 0) {
        own = -1;
        free_q(qs);
        return;
      }
      first = facts.first;
      last = facts.last;
      whole_first = facts.whole_first[wg];
      whole_last = facts.whole_last[wg];
      cut = last * BN > facts.k_len;
      if constexpr (C::kMasked)
        ends = row_ends(mask_of(facts, call.options), facts.row + wg * 64 + warp * 16 + lane / 4);
      else
        ends = {{0, 0}, {facts.k_len, facts.k_len}};
    };
    float bias[C::kOptions ? BN / 2 : 1];
    auto foresee = [&](int n) {
      if constexpr (C::kOptions) fetch_bias(bias, call.options, pairs_at(own, n));
    };
    auto score = [&](int n) {
      if constexpr (C::kOptions) score_pairs(s, bias, call.options, scale, pairs_at(own, n));
    };
    auto thin = [&](int n) {
      if constexpr (C::kOptions) drop_out(s, call.options, pairs_at(own, n), lane);
    };
    auto drop = [&](int n) { mask_rows(s, ends, n * BN + (lane % 4) * 2, -INFINITY); };
    auto store = [&](int place, const float(&sum_)[2], const float(&ref_)[2], auto final_) {
      constexpr bool final = decltype(final_)::value;  // no further pass mends this tile
      const Facts& facts = told[place];
      const int row = facts.row + wg * 64 + warp * 16 + lane / 4, rows = facts.rows;
      bool bad = false;
      float factor[2];
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        float t = sum_[r];
        t += __shfl_xor_sync(~0u, t, 1);
        t += __shfl_xor_sync(~0u, t, 2);
        bad |= row + 8 * r < rows && (!(t < 9e18f) || (t < 1e-30f && t > 0.f));
        float lse = t > 0.f ? ref_[r] * kLn2 + __logf(t) : -INFINITY;
        factor[r] = t > 0.f ? 1.f / t : 0.f;
        if (call.options.sink && fmaxf(lse, call.options.sink[facts.head]) > -INFINITY) {
          const float sink = call.options.sink[facts.head], above = fmaxf(lse, sink);
          const float joined = above + __logf(__expf(lse - above) + __expf(sink - above));
          factor[r] *= __expf(lse - joined);
          lse = joined;
        }
        if (call.lse && row + 8 * r < rows && (lane & 3) == 0)
          static_cast<float*>(call.lse.data)[facts.lse_at + (row + 8 * r) * call.lse.stride[2]] = lse;
      }
      bad |= not_finite(o, row < rows, row + 8 < rows);
      store_rows<T>(o, static_cast<T*>(call.o.data) + facts.at, call.o.stride[2], row, rows, call.Dv, factor, lane);
      bad = __any_sync(~0u, bad);
      if constexpr (final) {
        if (bad)
          careful_forward<T, D / 32, C::kOptions>(call, span_of(call, facts.batch), mask_of(facts, call.options),
                                                  facts.batch, facts.head, row - lane / 4, lane);
      } else if (lane == 0) {
        task.flags[facts.tile * 16 + wg * 4 + warp] = bad ? blockIdx.x : 0xFFFFu;
        if (bad) *any_redo = 1;
      }
    };
    auto begin = [&] {  // softmax of a tile's first block
      free_k();
      if (last - first == 1) free_q(qs);
      score(last - 1);
      if (C::kMasked || cut) drop(last - 1);
      maximum(Yes{}, Yes{});
      exponentials();
      thin(last - 1);
    };
    auto step = [&](int n, auto masked_, auto fixed_) {
      constexpr bool fixed = decltype(fixed_)::value, masked = decltype(masked_)::value;
      foresee(n);
      barrier_wait(k_full + 8 * st, ph);
      take_turn();
      qk(qs);
      barrier_wait(v_full + 8 * stv, phv);
      pv();
      pass_turn();
      wgmma_wait<1>();
      pin(s);
      free_k();
      if (n == first) free_q(qs);
      score(n);
      if constexpr (masked) drop(n);
      if constexpr (!fixed) maximum(No{}, masked_);
      exponentials();
      thin(n);
      pin(s);
      wgmma_wait<0>();
      pin(o);
      pin(pf);
      free_v();
      pack_p();
      if constexpr (!fixed)
#pragma unroll
        for (int i = 0; i < D / 2; ++i) o[i] *= shrink[(i >> 1) & 1];
    };
    using Fixed = std::bool_constant<C::kFixed>;
    using Final = std::bool_constant<!C::kFixed>;
    fetch();
    if (own >= 0) {
      foresee(last - 1);
      barrier_wait(k_full + 8 * st, ph);
      take_turn();
      qk(qs);
      pass_turn();
      wgmma_wait<0>();
      pin(s);
      begin();
      pack_p();
      add = 0;
      while (true) {
        int n = last - 2;
        if constexpr (C::kMasked)
          for (; n >= whole_last; --n) step(n, Yes{}, No{});
        for (; n >= (C::kMasked ? whole_first : first); --n) step(n, No{}, Fixed{});
        if constexpr (C::kMasked)
          for (; n >= first; --n) step(n, Yes{}, Fixed{});
        const int place = own;
        const float sum_[2] = {sum[0], sum[1]}, ref_[2] = {ref[0], ref[1]};
        fetch();
        if (own < 0) {
          barrier_wait(v_full + 8 * stv, phv);
          pv();
          wgmma_wait<0>();
          pin(o);
          free_v();
          store(place, sum_, ref_, Final{});
          break;
        }
        // The last PV of this tile flies with the first QK of the next.
        foresee(last - 1);
        barrier_wait(k_full + 8 * st, ph);
        take_turn();
        qk(qs);
        barrier_wait(v_full + 8 * stv, phv);
        pv();
        pass_turn();
        wgmma_wait<1>();
        pin(s);
        begin();
        pin(s);
        wgmma_wait<0>();
        pin(o);
        pin(pf);
        free_v();
        store(place, sum_, ref_, Final{});
        pack_p();
        add = 0;
      }
    }
    if constexpr (C::kFixed) {  // flagged tiles again, by the online form, one by one
      __syncwarp();
      if (lane == 0) barrier_arrive(all_done);
      for (fetch(); own >= 0; fetch()) {
        barrier_wait(k_full + 8 * st, ph);
        take_turn();
        qk(qs);
        pass_turn();
        wgmma_wait<0>();
        pin(s);
        free_k();
        if (last - first == 1) free_q(qs);
        drop(last - 1);
        maximum(Yes{}, Yes{});
        exponentials();
        pack_p();
        add = 0;
        for (int n = last - 2; n >= first; --n) step(n, Yes{}, No{});
        barrier_wait(v_full + 8 * stv, phv);
        pv();
        wgmma_wait<0>();
        pin(o);
        free_v();
        store(own, sum, ref, Yes{});
      }
    }
    if (C::kTurns && wg == 0) named_sync(1, 256);  // takes the last turn back, so that the barrier ends clean
  }
}

}  // namespace mh::kernels::cuda
