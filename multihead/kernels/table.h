// The table of kernels. A device is a filled table; an instruction set of the CPU refines the table below it.
#pragma once

#include <string_view>

#include "multihead/base/device.h"
#include "multihead/kernels/activation.h"
#include "multihead/kernels/attention.h"
#include "multihead/kernels/cross_entropy.h"
#include "multihead/kernels/dropout.h"
#include "multihead/kernels/elementwise.h"
#include "multihead/kernels/embedding.h"
#include "multihead/kernels/gemm.h"
#include "multihead/kernels/linear_top_k.h"
#include "multihead/kernels/normalise.h"
#include "multihead/kernels/recurrent.h"
#include "multihead/kernels/rope.h"
#include "multihead/kernels/softmax.h"
#include "multihead/kernels/sparse_linear.h"
#include "multihead/kernels/update.h"

namespace mh::kernels {

// Of kernels that no instruction set refines: who calls one includes its contract.
struct CacheAppendArgs;
struct ComposedBackwardArgs;
struct ComposedForwardArgs;
struct ComposedStatisticsArgs;
struct ComposedWeightsArgs;
struct LseChoiceArgs;
struct MergeBackwardArgs;
struct MergeForwardArgs;
struct RelativeBiasBackwardArgs;
struct RelativeBiasForwardArgs;
struct RopeAnglesArgs;
struct RowCopyArgs;
struct TotalArgs;

[[noreturn]] void missing(std::string_view name);

// Every pointer in Args is memory of the queue's device; everything else goes by value.
template <class Args>
struct Kernel {
  std::string_view name;
  void (*run)(const Args&, Queue&) = nullptr;

  explicit operator bool() const { return run != nullptr; }
  void operator()(const Args& args, Queue& queue) const {
    if (!run) missing(name);
    run(args, queue);
  }
};

struct Table {
  std::string_view rung;
#define MH_KERNEL(Args, kernel) Kernel<Args> kernel{#kernel};
#include "multihead/kernels/list.inl"
#undef MH_KERNEL
};

// Calls f.operator()<&Table::kernel>() for every kernel, in the order of the table.
template <class F>
void for_each_kernel(F&& f) {
#define MH_KERNEL(Args, kernel) f.template operator()<&Table::kernel>();
#include "multihead/kernels/list.inl"
#undef MH_KERNEL
}

// The kernels in use on a device: of the CPU, those of the rung in use. Throws: unsupported where no table has been
// given.
const Table& kernels_of(Device device);
// Takes a table into use for every device of a kind other than the CPU; the table must live on. Null: none any more.
void use_table(Device::Kind kind, const Table* table);

}  // namespace mh::kernels
