// The PTX that the Hopper kernels stand on: shared-memory descriptors, mbarriers, TMA, wgmma order, named barriers,
// register hand-over. Every operand form was checked against integers on an H200.
#pragma once

#include <cuda.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>

#include "multihead/kernels/cuda/hopper/wgmma.h"

#define MH_DEVICE __device__ __forceinline__

namespace mh::kernels::cuda {

MH_DEVICE uint32_t shared_address(const void* p) { return static_cast<uint32_t>(__cvta_generic_to_shared(p)); }

// A tile in shared memory: chunks of 64 columns (128 bytes) × rows, each chunk at a multiple of 1024; the 16-byte unit
// u of row r lies at unit u ^ (r & 7), as TMA writes a box {64, rows} with the 128-byte swizzle. Descriptor: bits 0-13
// address >> 4, 16-29 LBO >> 4, 32-45 SBO >> 4, 62-63 swizzle (1: 128 bytes).
MH_DEVICE uint64_t descriptor(uint32_t address, uint32_t lbo, uint32_t sbo) {
  return static_cast<uint64_t>((address & 0x3FFFF) >> 4) | static_cast<uint64_t>(lbo >> 4) << 16 |
         static_cast<uint64_t>(sbo >> 4) << 32 | uint64_t{1} << 62;
}
// The contracted dimension is contiguous: 16 more of it are 32 bytes further inside a chunk.
MH_DEVICE uint64_t descriptor_k(uint32_t address) { return descriptor(address, 16, 1024); }
// The free dimension is contiguous, rows are contracted: 16 more of them are 2048 bytes further.
MH_DEVICE uint64_t descriptor_mn(uint32_t address, uint32_t chunk_bytes) {
  return descriptor(address, chunk_bytes, 1024);
}
MH_DEVICE uint64_t advance(uint64_t d, uint32_t bytes) { return d + (bytes >> 4); }

MH_DEVICE void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;\n" ::: "memory"); }
MH_DEVICE void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;\n" ::: "memory"); }
template <int N>
MH_DEVICE void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;\n" ::"n"(N) : "memory");
}
// After a wait: reads of the accumulators must not have moved above it.
template <int N>
MH_DEVICE void pin(float (&r)[N]) {
#pragma unroll
  for (int i = 0; i < N; ++i) asm volatile("" : "+f"(r[i])::"memory");
}
template <int N>
MH_DEVICE void pin(uint32_t (&r)[N]) {
#pragma unroll
  for (int i = 0; i < N; ++i) asm volatile("" : "+r"(r[i])::"memory");
}

MH_DEVICE void barrier_init(uint32_t b, uint32_t count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;\n" ::"r"(b), "r"(count));
}
MH_DEVICE void barrier_init_fence() { asm volatile("fence.mbarrier_init.release.cluster;\n" ::: "memory"); }
MH_DEVICE void barrier_expect(uint32_t b, uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;\n" ::"r"(b), "r"(bytes) : "memory");
}
MH_DEVICE void barrier_arrive(uint32_t b) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];\n" ::"r"(b) : "memory");
}
// A warp gives back what all of its lanes have read: lane 0 arrives for them. racecheck follows arrivals but not
// __syncwarp, so in the build it looks at (MH_RACECHECK) every lane arrives. kReleases: what a barrier expects of one
// warp.
#ifdef MH_RACECHECK
inline constexpr int kReleases = 32;
#else
inline constexpr int kReleases = 1;
#endif
MH_DEVICE void warp_release(uint32_t b, int lane) {
  if constexpr (kReleases == 32) {
    barrier_arrive(b);
  } else {
    __syncwarp();
    if (lane == 0) barrier_arrive(b);
  }
}
// Waits until the phase of this parity has completed. On a fresh barrier parity 1 passes and parity 0 blocks.
MH_DEVICE void barrier_wait(uint32_t b, uint32_t parity) {
  asm volatile(
      "{\n.reg .pred p;\nW: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n@p bra D;\nbra W;\nD:\n}\n" ::"r"(b),
      "r"(parity)
      : "memory");
}

MH_DEVICE void tma_prefetch(const CUtensorMap* m) { asm volatile("prefetch.tensormap [%0];\n" ::"l"(m) : "memory"); }
MH_DEVICE void tma_load(uint32_t to, const CUtensorMap* m, uint32_t barrier, int column, int row, int head, int entry) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3,%4,%5,%6}], [%2];\n" ::
          "r"(to),
      "l"(m), "r"(barrier), "r"(column), "r"(row), "r"(head), "r"(entry)
      : "memory");
}
// All chunks of 64 columns at once: a map of five axes (64 columns, rows, chunks, heads, entries).
MH_DEVICE void tma_load_joined(uint32_t to, const CUtensorMap* m, uint32_t barrier, int row, int head, int entry) {
  asm volatile(
      "cp.async.bulk.tensor.5d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3,%4,%3,%5,%6}], [%2];\n" ::
          "r"(to),
      "l"(m), "r"(barrier), "r"(0), "r"(row), "r"(head), "r"(entry)
      : "memory");
}
// The same of what is read once: it leaves L2 first.
MH_DEVICE void tma_load_once(uint32_t to, const CUtensorMap* m, uint32_t barrier, int row, int head, int entry) {
  uint64_t policy;
  asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;\n" : "=l"(policy));
  asm volatile(
      "cp.async.bulk.tensor.5d.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1, {%3,%4,%3,%5,%6}], [%2], "
      "%7;\n" ::"r"(to),
      "l"(m), "r"(barrier), "r"(0), "r"(row), "r"(head), "r"(entry), "l"(policy)
      : "memory");
}
MH_DEVICE void bulk_load(uint32_t to, const void* from, uint32_t bytes, uint32_t barrier) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];\n" ::"r"(to),
               "l"(from), "r"(bytes), "r"(barrier)
               : "memory");
}

// Four 8 × 8 tiles of 16-bit elements; lane l gives the address of row l % 8 of tile l / 8.
MH_DEVICE void load_matrix(uint32_t* r, uint32_t address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(address)
               : "memory");
}
MH_DEVICE void load_matrix_transposed(uint32_t* r, uint32_t address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(address)
               : "memory");
}

MH_DEVICE void named_sync(int id, int threads) {
  asm volatile("bar.sync %0, %1;\n" ::"r"(id), "r"(threads) : "memory");
}
MH_DEVICE void named_arrive(int id, int threads) {
  asm volatile("bar.arrive %0, %1;\n" ::"r"(id), "r"(threads) : "memory");
}
template <int N>
MH_DEVICE void give_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;\n" ::"n"(N));
}
template <int N>
MH_DEVICE void take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;\n" ::"n"(N));
}
MH_DEVICE float exp2_fast(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;\n" : "=f"(y) : "f"(x));
  return y;
}

// Two elements of type T in a word.
template <class T>
MH_DEVICE uint32_t pack(float low, float high);
template <>
MH_DEVICE uint32_t pack<__nv_bfloat16>(float low, float high) {
  uint32_t r;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;\n" : "=r"(r) : "f"(high), "f"(low));
  return r;
}
template <>
MH_DEVICE uint32_t pack<__half>(float low, float high) {
  uint32_t r;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;\n" : "=r"(r) : "f"(high), "f"(low));
  return r;
}
template <class T>
MH_DEVICE float2 unpack(uint32_t word);
template <>
MH_DEVICE float2 unpack<__nv_bfloat16>(uint32_t word) {
  return {__uint_as_float(word << 16), __uint_as_float(word & 0xFFFF0000u)};
}
template <>
MH_DEVICE float2 unpack<__half>(uint32_t word) {
  return __half22float2(*reinterpret_cast<const __half2*>(&word));
}

}  // namespace mh::kernels::cuda
