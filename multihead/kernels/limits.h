// The contract of the limit loops: the most a rung can do, for measuring kernels against it.
#pragma once

#include <cstdint>

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

}  // namespace mh::kernels
