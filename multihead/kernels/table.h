// Every kernel, one line each. A device is a filled table; an instruction set refines the table below it.
#pragma once

#include <string_view>

#include "multihead/kernels/attention.h"
#include "multihead/kernels/gemm.h"
#include "multihead/kernels/limits.h"

namespace mh::kernels {

[[noreturn]] void missing(std::string_view name);

template <class Args>
struct Kernel {
  std::string_view name;
  void (*run)(const Args&) = nullptr;

  explicit operator bool() const { return run != nullptr; }
  void operator()(const Args& args) const {
    if (!run) missing(name);
    run(args);
  }
};

struct Table {
  std::string_view rung;
  Kernel<AttentionForwardArgs> attention_forward{"attention_forward"};
  Kernel<AttentionForwardArgs> attention_decode{"attention_decode"};  // few queries over many keys, split over keys
  Kernel<AttentionBackwardArgs> attention_backward{"attention_backward"};
  Kernel<AttentionWeightsArgs> attention_weights{"attention_weights"};
  Kernel<AttentionStatisticsArgs> attention_statistics{"attention_statistics"};
  Kernel<GemmArgs> gemm{"gemm"};
  Kernel<GemmPackArgs> gemm_pack{"gemm_pack"};
  Kernel<LimitArgs> fma_peak{"fma_peak"};      // cpu/limits.inl: fma_loop
  Kernel<LimitArgs> plain_read{"plain_read"};  // cpu/limits.inl: read_loop
  Kernel<LimitArgs> tile_peak{"tile_peak"};    // cpu/limits_amx.inl: tile_loop; only where there are tiles
  Kernel<LimitArgs> tile_probe{"tile_probe"};  // cpu/limits_amx.inl: tile_probe_loop
};

}  // namespace mh::kernels
