// Every kernel, one line each. A device is a filled table; an instruction set refines the table below it.
#pragma once

#include <string_view>

#include "multihead/kernels/attention.h"
#include "multihead/kernels/gemm.h"

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
};

}  // namespace mh::kernels
