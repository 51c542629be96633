// A matrix product on every rung, for the tests: its operands, and the call.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "multihead/kernels/cpu/dispatch.h"
#include "multihead/kernels/gemm.h"
#include "multihead/tensor/tensor.h"

namespace mh {

using kernels::Activation;
using kernels::GemmArgs;
using kernels::Table;

struct Machine {
  std::string name;
  const Table* table;
};

// Every rung that runs here, and the software twin of the tiles.
inline std::vector<Machine> machines() {
  std::vector<Machine> all;
  const kernels::Rung first = kernels::rung();
  for (const kernels::RungStatus& status : kernels::rungs()) {
    if (!status.usable) continue;
    kernels::use_rung(status.rung);
    const Table& table = kernels::kernels_of(Device{});
    all.push_back({std::string(table.rung), &table});
  }
  kernels::use_rung(first);
  if (const Table* twin = kernels::amx_twin()) all.push_back({"amx_twin", twin});
  return all;
}

struct Product {
  Tensor a{}, w{};
  Tensor bias{}, residual{}, gate{};
  float scale = 1;
  Activation activation = Activation::none;
  DType result = DType::f32;

  int64_t m() const { return a.size(0); }
  int64_t k() const { return w.size(0); }
  int64_t n() const { return w.size(1); }
};

inline Product make(int64_t m, int64_t n, int64_t k, DType type) {
  return {.a = randn(Shape{m, k}, 1, type), .w = randn(Shape{k, n}, 2, type), .result = type};
}

enum class Weights { plain, packed };

inline void run_into(const Machine& machine, const Product& p, Weights kind, const Tensor& y) {
  GemmArgs args{.a = p.a.view(),
                .w = p.w.view(),
                .n = p.n(),
                .k = p.k(),
                .y = y.view(),
                .scale = p.scale,
                .activation = p.activation};
  if (p.bias) args.bias = p.bias.view();
  if (p.residual) args.residual = p.residual.view();
  if (p.gate) args.gate = p.gate.view();
  Tensor words;
  if (kind == Weights::packed) {
    int64_t bytes = -1;
    machine.table->gemm_pack({.w = p.w.view(), .bytes = &bytes}, queue_of(Device{}));
    ASSERT_GE(bytes, p.w.count() * size_of(p.w.dtype()));
    words = empty(Shape{bytes}, DType::u8);
    machine.table->gemm_pack({.w = p.w.view(), .packed = words.data<uint8_t>()}, queue_of(Device{}));
    args.packed = words.data<uint8_t>();
    args.w = {};
  }
  machine.table->gemm(args, queue_of(Device{}));
}

inline Tensor run(const Machine& machine, const Product& p, Weights kind) {
  Tensor y = full(Shape{p.m(), p.n()}, 77, p.result);
  run_into(machine, p, kind, y);
  return y;
}

// The same numbers, columns one after the other in memory.
inline Tensor turned(const Tensor& x) { return x.transpose(0, 1).contiguous().transpose(0, 1); }

}  // namespace mh
