// The loops that measure the most a rung of the CPU can do: no kernels, as they are run on one thread and compute
// nothing.
#pragma once

#include <cstdint>
#include <string_view>

namespace mh::kernels {

// fma_peak    `rounds` of independent f32 multiply-adds in registers;      work = floating-point operations
// pair_peak   `rounds` of independent products of bf16 pairs in registers; work = floating-point operations
// tile_peak   `rounds` of bf16 tile products on data that is not zero;     work = floating-point operations
// tile_probe  `rounds` of tile loads and products out of the first cache;  work = tile products
// plain_read  reads `bytes` at `data` once, adding nothing but the loads;  work = bytes
// Each runs on the calling thread alone. data may be null unless it is read.
struct LimitArgs {
  int64_t rounds = 0;
  const void* data = nullptr;
  int64_t bytes = 0;
  double* work = nullptr;  // out
};

struct Probe {
  std::string_view name;
  void (*run)(const LimitArgs&) = nullptr;

  explicit operator bool() const { return run != nullptr; }
};

// One for each rung; each refines that of the rung below it.
struct Probes {
  Probe fma_peak{"fma_peak"};      // cpu/limits.inl: fma_loop
  Probe plain_read{"plain_read"};  // cpu/limits.inl: read_loop
  Probe pair_peak{"pair_peak"};    // cpu/limits_pairs.inl: pair_loop; only where bf16 is multiplied by pairs
  Probe tile_peak{"tile_peak"};    // cpu/limits_amx.inl: tile_loop; only where there are tiles
  Probe tile_probe{"tile_probe"};  // cpu/limits_amx.inl: tile_probe_loop
};

}  // namespace mh::kernels
